# SPDX-License-Identifier: MIT
"""Traces for the tests of `gpreempt report`, in every format, written from one description of a run.

Independent of the programs under test: nothing here is shared with the readers. A run is a list of events; each writer puts
it into a format as its tool does, with that format's traps (names in quotes, times in text, lanes in the place of processes).
Formats of which the project has no real file are tested on these only, and the documentation says so.
"""
import csv
import gzip
import json
import os
import random
import re
import shutil
import sqlite3

PID = 3108374
T0 = 418_000_000_000_000


class Event:
    """layer: HIP, HSA, RCCL, MARKER, kernel, copy. Times in ns, relative to T0."""

    def __init__(self, layer, name, start, duration, **more):
        self.layer, self.name, self.start, self.end = layer, name, T0 + start, T0 + start + duration
        self.pid, self.tid = more.get("pid", PID), more.get("tid", PID)
        self.correlation = more.get("correlation", 0)
        self.device, self.queue, self.stream = more.get("device", 9), more.get("queue", 0), more.get("stream", 1)
        self.size = more.get("size")
        self.dispatch = T0 + more["dispatch"] if "dispatch" in more else None
        self.complete = T0 + more["complete"] if "complete" in more else None
        self.grid, self.workgroup = more.get("grid", 1048576), more.get("workgroup", 256)


def seed_run() -> list[Event]:
    """The shape and figures of the run that seed 004 describes (facts/ecosystem.md, section 0.1): 198.5 ms, of which 30 % are
    the application's, 58 % HIP's own and 12 % HSA's; the first copy takes 135 ms, of which 114 ms are silent; the engines
    are busy for 0.35 ms."""
    events, number = [], [0]

    def call(name, start, duration, children=()):
        number[0] += 1
        mine = number[0]
        events.append(Event("HSA" if name.startswith("hsa") else "HIP", name, start, duration, correlation=mine))
        for child, offset, length in children:
            number[0] += 1
            events.append(Event("HSA", child, start + offset, length, correlation=number[0]))
        return mine

    call("hsa_iterate_agents", 0, 1_104_000)
    call("hipSetDevice", 1_383_000, 500)
    call("hipGetDevicePropertiesR0600", 1_387_000, 1_700)
    for start, length in ((59_586_000, 46_600), (59_634_000, 14_500), (59_650_000, 13_100)):
        call("hipMalloc", start, length)
    first = call(
        "hipMemcpy",
        59_675_000,
        135_038_000,
        (
            ("hsa_queue_create", 60_000, 11_225_000),
            ("hsa_executable_load_agent_code_object", 125_385_000, 613_700),
            ("hsa_amd_memory_lock_to_pool", 125_999_000, 783_000),
            ("hsa_amd_memory_async_copy_on_engine", 126_783_000, 8_080_000),
            ("hsa_signal_wait_scacquire", 134_864_000, 150_000),
        ),
    )
    second = call(
        "hipMemcpy",
        194_718_000,
        201_600,
        (
            ("hsa_signal_store_screlease", 20_000, 1_000),
            ("hsa_amd_memory_async_copy_on_engine", 40_000, 9_000),
            ("hsa_signal_wait_scacquire", 60_000, 120_000),
        ),
    )
    call("__hipPushCallConfiguration", 194_933_000, 425)
    call("__hipPopCallConfiguration", 194_938_000, 231)
    launch = call(
        "hipLaunchKernel",
        194_946_000,
        748_150,
        (
            ("hsa_executable_load_agent_code_object", 100_000, 420_000),
            ("hsa_queue_add_write_index_screlease", 700_000, 480),
            ("hsa_signal_store_screlease", 704_000, 38_000),
        ),
    )
    call("hipDeviceSynchronize", 195_712_000, 29_270, (("hsa_signal_wait_scacquire", 5_000, 20_000),))
    third = call(
        "hipMemcpy",
        195_748_000,
        951_300,
        (("hsa_amd_memory_lock_to_pool", 100_000, 160_000), ("hsa_signal_wait_scacquire", 740_000, 183_000)),
    )
    for start, length, inner in (
        (198_173_000, 91_000, 86_000),
        (198_367_000, 64_400, 50_000),
        (198_431_300, 88_700, 80_000),
    ):
        call("hipFree", start, length, (("hsa_amd_memory_pool_free", 2_000, inner),))
    events.append(
        Event(
            "kernel",
            "vectorAdd(float const*, float const*, float*, int)",
            195_701_205,
            13_520,
            dispatch=195_646_000,
            complete=195_717_459,
            correlation=launch,
            queue=0,
            stream=0,
        )
    )
    for start, length, of, direction in (
        (194_575_000, 101_720, first, "HOST_TO_DEVICE"),
        (194_790_000, 100_520, second, "HOST_TO_DEVICE"),
        (196_520_000, 134_161, third, "DEVICE_TO_HOST"),
    ):
        events.append(Event("copy", direction, start, length, correlation=of, size=4 << 20))
    return events


def random_run(seed: int, count: int = 400) -> list[Event]:
    """Nested calls on several threads of two processes, kernels on several queues that overlap, copies: no rule, only load for
    the arithmetic."""
    rng, events, number = random.Random(seed), [], 0
    for pid, tid in ((100, 100), (100, 101), (200, 200)):
        now = rng.randrange(1000, 50000)
        for _ in range(count // 4):
            now += rng.randrange(0, 20000)
            length = rng.randrange(1, 30000)
            number += 1
            name = rng.choice(["hipLaunchKernel", "hipMemcpyAsync", "hipMalloc", "hipStreamSynchronize"])
            events.append(Event("HIP", name, now, length, pid=pid, tid=tid, correlation=number))
            inner = now
            while rng.random() < 0.6:
                inner += rng.randrange(0, 3000)
                part = rng.randrange(0, 4000)
                if inner + part > now + length:
                    break
                events.append(
                    Event(
                        "HSA",
                        rng.choice(["hsa_signal_create", "hsa_queue_create"]),
                        inner,
                        part,
                        pid=pid,
                        tid=tid,
                        correlation=10_000_000 + len(events),
                    )
                )
                inner += part
            if name == "hipLaunchKernel":
                events.append(
                    Event(
                        "kernel",
                        f'kernel<{rng.randrange(5)}, int>("x")',
                        now + rng.randrange(1, 40000),
                        rng.randrange(1, 60000),
                        pid=pid,
                        tid=tid,
                        queue=rng.randrange(1, 4) + (pid // 100) * 10,
                        stream=rng.randrange(1, 6),
                        correlation=number,
                    )
                )
            if name == "hipMemcpyAsync":
                events.append(
                    Event(
                        "copy",
                        rng.choice(["HOST_TO_DEVICE", "DEVICE_TO_HOST"]),
                        now + rng.randrange(1, 9000),
                        rng.randrange(1, 30000),
                        pid=pid,
                        tid=tid,
                        correlation=number,
                        size=rng.randrange(1, 1 << 24),
                    )
                )
            now += length
    return events


def kernels_run(count: int, kernel: int, gap: int, call: int = 2000, **more: int) -> list[Event]:
    """So many launches, each with its kernel, one every max(gap, call) ns."""
    events, now = [], 1000
    for i in range(count):
        events.append(Event("HIP", "hipLaunchKernel", now, call, correlation=i + 1))
        events.append(Event("kernel", "k", now + call + 500, kernel, correlation=i + 1, queue=1, **more))
        now += max(gap, call)
    return events


def of(events: list[Event], *layers: str) -> list[Event]:
    return [e for e in events if e.layer in layers]


def write_csv(path: str, header: list, rows: list, quoted: bool = True) -> str:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC if quoted else csv.QUOTE_MINIMAL, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    return path


def rocprofv3_csv(events: list[Event], folder: str) -> list[str]:
    """hip_api, hsa_api, kernel and memory_copy traces; calls by their ends, kernels in no order; no process with kernels."""
    os.makedirs(folder, exist_ok=True)
    paths = []
    for layer, domain, name in (
        ("HIP", "HIP_RUNTIME_API_EXT", "hip_api"),
        ("HSA", "HSA_CORE_API", "hsa_api"),
        ("RCCL", "RCCL_API", "rccl_api"),
        ("MARKER", "MARKER_CORE_API", "marker_api"),
    ):
        rows = [
            (domain, e.name, e.pid, e.tid, e.correlation, e.start, e.end)
            for e in sorted(of(events, layer), key=lambda e: e.end)
        ]
        if rows:
            paths.append(
                write_csv(
                    f"{folder}/{name}_trace.csv",
                    [
                        "Domain",
                        "Function",
                        "Process_Id",
                        "Thread_Id",
                        "Correlation_Id",
                        "Start_Timestamp",
                        "End_Timestamp",
                    ],
                    rows,
                )
            )
    kernels = of(events, "kernel")
    random.Random(1).shuffle(kernels)
    paths.append(
        write_csv(
            f"{folder}/kernel_trace.csv",
            [
                "Kind",
                "Agent_Id",
                "Queue_Id",
                "Stream_Id",
                "Thread_Id",
                "Dispatch_Id",
                "Kernel_Id",
                "Kernel_Name",
                "Correlation_Id",
                "Start_Timestamp",
                "End_Timestamp",
                "Workgroup_Size_X",
                "Workgroup_Size_Y",
                "Workgroup_Size_Z",
                "Grid_Size_X",
                "Grid_Size_Y",
                "Grid_Size_Z",
            ],
            [
                (
                    "KERNEL_DISPATCH",
                    f"Agent {e.device}",
                    e.queue,
                    e.stream,
                    e.tid,
                    i + 1,
                    7,
                    e.name,
                    e.correlation,
                    e.start,
                    e.end,
                    e.workgroup,
                    1,
                    1,
                    e.grid,
                    1,
                    1,
                )
                for i, e in enumerate(kernels)
            ],
        )
    )
    copies = of(events, "copy")
    if copies:
        paths.append(
            write_csv(
                f"{folder}/memory_copy_trace.csv",
                [
                    "Kind",
                    "Direction",
                    "Stream_Id",
                    "Source_Agent_Id",
                    "Destination_Agent_Id",
                    "Correlation_Id",
                    "Start_Timestamp",
                    "End_Timestamp",
                ],
                [
                    (
                        "MEMORY_COPY",
                        "MEMORY_COPY_" + e.name,
                        e.stream,
                        "Agent 0",
                        f"Agent {e.device}",
                        e.correlation,
                        e.start,
                        e.end,
                    )
                    for e in copies
                ],
            )
        )
    return paths


def rocprofv2_csv(events: list[Event], folder: str) -> list[str]:
    """The file plugin: a blank line behind each header, Correlation_ID, PID and TID."""
    os.makedirs(folder, exist_ok=True)
    paths = []
    for layer in ("HIP", "HSA"):
        path = write_csv(
            f"{folder}/{layer.lower()}_api.csv",
            ["Domain", "Function", "Start_Timestamp", "End_Timestamp", "Correlation_ID"],
            [(f"{layer}_API_DOMAIN", e.name, e.start, e.end, e.correlation) for e in of(events, layer)],
            quoted=False,
        )
        paths.append(path)
    paths.append(
        write_csv(
            f"{folder}/results.csv",
            [
                "Dispatch_ID",
                "GPU_ID",
                "Queue_ID",
                "PID",
                "TID",
                "Grid_Size",
                "Workgroup_Size",
                "Kernel_Name",
                "Start_Timestamp",
                "End_Timestamp",
                "Correlation_ID",
            ],
            [
                (i, e.device, e.queue, e.pid, e.tid, e.grid, e.workgroup, f'"{e.name}"', e.start, e.end, e.correlation)
                for i, e in enumerate(of(events, "kernel"))
            ],
            quoted=False,
        )
    )
    paths.append(
        write_csv(
            f"{folder}/hsa_ops.csv",
            ["Domain", "Operation", "Kernel_Name", "Start_Timestamp", "Stop_Timestamp", "Correlation_ID"],
            [("HSA_OPS_DOMAIN", "COPY", "", e.start, e.end, e.correlation) for e in of(events, "copy")],
            quoted=False,
        )
    )
    for path in paths:
        text = open(path, encoding="utf-8").read().split("\n", 1)
        open(path, "w", encoding="utf-8").write(text[0] + "\n\n" + text[1])
    return paths


KERN = [
    "Index",
    "KernelName",
    "gpu-id",
    "queue-id",
    "queue-index",
    "pid",
    "tid",
    "grd",
    "wgr",
    "lds",
    "scr",
    "arch_vgpr",
    "accum_vgpr",
    "sgpr",
    "wave_size",
    "sig",
    "obj",
    "DispatchNs",
    "BeginNs",
    "EndNs",
    "CompleteNs",
    "DurationNs",
]


def kern_rows(events: list[Event]) -> list[tuple]:
    return [
        (
            i,
            e.name + " [clone .kd]",
            e.device,
            e.queue,
            i,
            e.pid,
            e.tid,
            e.grid,
            e.workgroup,
            0,
            0,
            8,
            0,
            16,
            64,
            "0x0",
            "0x7f00",
            e.dispatch,
            e.start,
            e.end,
            e.complete,
            e.end - e.start,
        )
        for i, e in enumerate(of(events, "kernel"))
    ]


def rocprof1_csv(events: list[Event], folder: str) -> list[str]:
    os.makedirs(folder, exist_ok=True)
    return [write_csv(f"{folder}/trace.csv", KERN, kern_rows(events))]


def rocprof1_db(events: list[Event], folder: str) -> list[str]:
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/trace.db"
    database = sqlite3.connect(path)
    for layer in ("HIP", "HSA"):
        database.execute(
            f'CREATE TABLE {layer} ("BeginNs" INTEGER, "EndNs" INTEGER, "pid" INTEGER, "tid" INTEGER, "Name" TEXT, "args" TEXT, '
            '"Index" INTEGER, "Data" TEXT, "__section" INTEGER, "__lane" INTEGER, "DurationNs" INTEGER)'
        )
        database.executemany(
            f"INSERT INTO {layer} VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            [
                (e.start, e.end, e.pid, e.tid, e.name, "()", e.correlation, "", 2, e.tid, e.end - e.start)
                for e in of(events, layer)
            ],
        )
    database.execute(
        'CREATE TABLE COPY ("BeginNs" INTEGER, "EndNs" INTEGER, "Name" TEXT, "pid" INTEGER, "tid" INTEGER, "Index" INTEGER)'
    )
    database.executemany(
        "INSERT INTO COPY VALUES (?,?,?,?,?,?)",
        [(e.start, e.end, "async-copy", e.pid, e.tid, i) for i, e in enumerate(of(events, "copy"))],
    )
    database.execute("CREATE TABLE KERN (" + ", ".join(f'"{name}"' for name in KERN) + ")")
    rows = [tuple('"' + value + '"' if i == 1 else value for i, value in enumerate(row)) for row in kern_rows(events)]
    database.executemany("INSERT INTO KERN VALUES (" + ",".join("?" * len(KERN)) + ")", rows)
    database.commit()
    database.close()
    return [path]


def rocprof1_json(events: list[Event], folder: str) -> list[str]:
    """Lanes in the place of processes, whole microseconds in quotes, the real times in args; an empty first element."""
    os.makedirs(folder, exist_ok=True)
    lanes = {"HIP": 2, "HSA": 3, "copy": 1, "kernel": 15}
    names = {1: "COPY", 2: "CPU HIP API", 3: "CPU HSA API", 15: "GPU9", 518: "GPU Barriers0"}
    out = [{}] + [
        {"args": {"name": name}, "ph": "M", "pid": pid, "name": "process_name", "sort_index": 1}
        for pid, name in names.items()
    ]
    for e in events:
        args = {"BeginNs": str(e.start), "EndNs": str(e.end), "pid": str(e.pid), "tid": str(e.tid)}
        if e.layer == "kernel":
            args.update(
                {
                    "gpu-id": str(e.device),
                    "queue-id": str(e.queue),
                    "DispatchNs": str(e.dispatch),
                    "CompleteNs": str(e.complete),
                }
            )
        out.append(
            {
                "ph": "X",
                "name": "async-copy" if e.layer == "copy" else e.name,
                "pid": lanes[e.layer],
                "tid": e.tid,
                "ts": str(e.start // 1000),
                "dur": str((e.end - e.start) // 1000),
                "args": args,
            }
        )
    out.append({"ts": 418618585170, "ph": "s", "cat": "DataFlow", "id": 0, "pid": 3, "tid": PID, "name": "dep"})
    path = f"{folder}/trace.json"
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            '{ "traceEvents":[' + "\n,".join(json.dumps(element) for element in out) + '],\n"otherData": {"x": "y"}}\n'
        )
    return [path]


def chrome_json(events: list[Event], folder: str) -> list[str]:
    """As frameworks write it: categories, decimals, correlations; a pair of B and E for ranges."""
    os.makedirs(folder, exist_ok=True)
    category = {"HIP": "cuda_runtime", "HSA": "cpu_op", "kernel": "kernel", "copy": "gpu_memcpy"}
    out = []
    for e in events:
        args = {"correlation": e.correlation}
        if e.layer in ("kernel", "copy"):
            args.update({"device": e.device, "stream": e.stream, "queue": e.queue})
        if e.size is not None:
            args["bytes"] = e.size
        out.append(
            {
                "ph": "X",
                "cat": category[e.layer],
                "name": e.name,
                "pid": e.pid,
                "tid": e.tid,
                "ts": f"@{e.start // 1000}.{e.start % 1000:03}@",
                "dur": f"{(e.end - e.start) // 1000}.{(e.end - e.start) % 1000:03}",
                "args": args,
            }
        )
    path = f"{folder}/chrome.json"
    with open(path, "w", encoding="utf-8") as file:
        text = json.dumps({"schemaVersion": 1, "traceEvents": out, "distributedInfo": {"rank": 0}}, indent=1)
        # Numbers with three decimals, exactly: as the tools print them, not as a float would.
        file.write(re.sub(r'"@([0-9.]+)@"', r"\1", text))
    return [path]


def kineto_json(events: list[Event], folder: str, first: str = "cuda", old: bool = False) -> list[str]:
    """As PyTorch's profiler writes it: work has its device for a process and its stream for a thread. Calls are named as in HIP
    and begin with `first`. old: the categories of 2021, and streams as texts."""
    os.makedirs(folder, exist_ok=True)
    category = {
        "HIP": "cuda_runtime",
        "driver": "cuda_driver",
        "kernel": "kernel",
        "copy": "gpu_memcpy",
        "MARKER": "user_annotation",
        "op": "cpu_op",
        "annotation": "gpu_user_annotation",
        "Trace": "Trace",
    }
    if old:
        category.update({"HIP": "Runtime", "kernel": "Kernel", "copy": "Memcpy", "op": "Operator"})
    out = [
        {"ph": "M", "name": "process_name", "pid": PID, "tid": 0, "ts": 1, "args": {"name": "python3"}},
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 1, "args": {"labels": "GPU 0"}},
    ]
    for e in events:
        args = {"External id": e.correlation}
        if e.layer not in ("MARKER", "op", "Trace"):
            args["correlation"] = e.correlation
        pid, tid, name = e.pid, e.tid, first + e.name[3:] if e.layer == "HIP" and e.name.startswith("hip") else e.name
        if e.layer in ("kernel", "copy", "annotation"):
            pid, tid = e.device, f"stream {e.stream}" if old else e.stream
            args.update({"device": e.device, "context": 1, "stream": e.stream})
        if e.layer == "kernel":
            args["grid"] = [e.grid // e.workgroup, 1, 1]
        if e.layer == "copy":
            name = {
                "HOST_TO_DEVICE": "Memcpy HtoD (Pageable -> Device)",
                "DEVICE_TO_HOST": "Memcpy DtoH (Device -> Pageable)",
            }[e.name]
        if e.size is not None:
            args["bytes"] = e.size
        if e.layer == "Trace":
            pid, tid = "Spans", "PyTorch Profiler"
        out.append(
            {
                "ph": "X",
                "cat": category[e.layer],
                "name": name,
                "pid": pid,
                "tid": tid,
                "ts": f"@{e.start // 1000}.{e.start % 1000:03}@",
                "dur": f"@{(e.end - e.start) // 1000}.{(e.end - e.start) % 1000:03}@",
                "args": args,
            }
        )
    path = f"{folder}/kineto.json"
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r'"@([0-9.]+)@"', r"\1", json.dumps({"schemaVersion": 1, "traceEvents": out})))
    return [path]


def rocprofv3_json(events: list[Event], folder: str, packed: bool = False) -> list[str]:
    """One element per process; names by number; agents by handles beyond 63 bits; a name longer than any buffer."""
    os.makedirs(folder, exist_ok=True)
    handle = 17332996360099338395
    tools = []
    for pid in sorted({e.pid for e in events}):
        mine = [e for e in events if e.pid == pid]
        kinds = ["NONE", "HSA_API", "HIP_API", "KERNEL_DISPATCH", "MEMORY_COPY"]
        operations = {"HIP": [], "HSA": [], "copy": []}
        symbols = {}

        def operation(e):
            name = "MEMORY_COPY_" + e.name if e.layer == "copy" else e.name
            if name not in operations[e.layer]:
                operations[e.layer].append(name)
            return operations[e.layer].index(name)

        records = {"kernel_dispatch": [], "hip_api": [], "hsa_api": [], "memory_copy": []}
        for e in mine:
            common = {
                "size": 64,
                "start_timestamp": e.start,
                "end_timestamp": e.end,
                "thread_id": e.tid,
                "correlation_id": {"internal": e.correlation, "external": 0},
            }
            if e.layer == "kernel":
                kernel = symbols.setdefault(e.name, len(symbols) + 1)
                records["kernel_dispatch"].append(
                    {
                        **common,
                        "kind": 3,
                        "operation": 1,
                        "stream_id": {"handle": e.stream},
                        "dispatch_info": {
                            "size": 64,
                            "agent_id": {"handle": handle},
                            "queue_id": {"handle": e.queue},
                            "kernel_id": kernel,
                            "dispatch_id": 1,
                            "workgroup_size": {"x": e.workgroup, "y": 1, "z": 1},
                            "grid_size": {"x": e.grid, "y": 1, "z": 1},
                        },
                    }
                )
            elif e.layer == "copy":
                records["memory_copy"].append(
                    {
                        **common,
                        "kind": 4,
                        "operation": operation(e),
                        "dst_agent_id": {"handle": handle},
                        "src_agent_id": {"handle": handle},
                        "bytes": e.size,
                    }
                )
            else:
                key = "hip_api" if e.layer == "HIP" else "hsa_api"
                records[key].append({**common, "kind": 2 if e.layer == "HIP" else 1, "operation": operation(e)})
        lists = [[], operations["HSA"], operations["HIP"], ["NONE", "COMPLETE"], operations["copy"]]
        tools.append(
            {
                "metadata": {
                    "pid": pid,
                    "init_time": 1,
                    "fini_time": 2,
                    "command": ["x"] * 3,
                    "environment": [{"name": "SECRET", "value": "hunter2"}],
                },
                "agents": [
                    {"size": 1, "id": {"handle": 1}, "type": 1, "cu_count": 0, "node_id": 0},
                    {"size": 1, "id": {"handle": handle}, "type": 2, "cu_count": 80, "node_id": 9},
                ],
                "counters": [],
                "strings": {
                    "callback_records": [],
                    "marker_api": [],
                    "buffer_records": [{"kind": kind, "operations": names} for kind, names in zip(kinds, lists)],
                },
                "code_objects": [{"uri": "file://" + "x" * 9000}],
                "kernel_symbols": [
                    {"kernel_id": number, "kernel_name": "_Z" + str(number), "formatted_kernel_name": name}
                    for name, number in symbols.items()
                ],
                "host_functions": [],
                "callback_records": {"counter_collection": []},
                "buffer_records": records,
            }
        )
    path = f"{folder}/results.json" + (".gz" if packed else "")
    with gzip.open(path, "wt", encoding="utf-8") if packed else open(path, "w", encoding="utf-8") as file:
        json.dump({"rocprofiler-sdk-tool": tools}, file)
    return [path]


def rocpd(events: list[Event], folder: str, empty: str) -> list[str]:
    os.makedirs(folder, exist_ok=True)
    path, suffix = f"{folder}/results.db", "_0000e8f3_1234_5678_9abc_def012345678"
    shutil.copy(empty, path)
    os.chmod(path, 0o644)
    database = sqlite3.connect(path)

    def insert(table, **values):
        names = ", ".join(f'"{name}"' for name in values)
        return database.execute(
            f'INSERT INTO "rocpd_{table}{suffix}" ({names}) VALUES ({",".join("?" * len(values))})',
            tuple(values.values()),
        ).lastrowid

    strings = {}

    def string(text):
        if text not in strings:
            strings[text] = insert("string", string=text)
        return strings[text]

    node = insert("info_node", hash=1, machine_id="m")
    secret = json.dumps({"AWS_SECRET_ACCESS_KEY": "hunter2-do-not-print"})
    processes = {
        pid: insert("info_process", nid=node, pid=pid, command="./x", environment=secret)
        for pid in sorted({e.pid for e in events})
    }
    threads = {
        key: insert("info_thread", nid=node, pid=processes[key[0]], tid=key[1])
        for key in sorted({(e.pid, e.tid) for e in events})
    }
    first = next(iter(processes.values()))
    cpu = insert("info_agent", nid=node, pid=first, type="CPU", absolute_index=0, extdata="{}")
    gpu = insert("info_agent", nid=node, pid=first, type="GPU", absolute_index=9, extdata=json.dumps({"cu_count": 80}))
    queues = {
        key: insert("info_queue", nid=node, pid=processes[key[0]], name=f"Queue {key[1]}")
        for key in sorted({(e.pid, e.queue) for e in of(events, "kernel")})
    }
    streams = {
        key: insert("info_stream", nid=node, pid=processes[key[0]], name=f"Stream {key[1]}")
        for key in sorted({(e.pid, e.stream) for e in of(events, "kernel", "copy")})
    }
    code = insert("info_code_object", nid=node, pid=first, agent_id=gpu)
    symbols = {}
    for e in events:
        category = {
            "HIP": "HIP_RUNTIME_API_EXT",
            "HSA": "HSA_CORE_API",
            "kernel": "KERNEL_DISPATCH",
            "copy": "MEMORY_COPY",
        }[e.layer]
        event = insert(
            "event", category_id=string(category), stack_id=e.correlation, parent_stack_id=0, correlation_id=0
        )
        thread = threads[(e.pid, e.tid)]
        if e.layer == "kernel":
            if e.name not in symbols:
                symbols[e.name] = insert(
                    "info_kernel_symbol",
                    nid=node,
                    pid=processes[e.pid],
                    code_object_id=code,
                    kernel_name="_Z",
                    display_name=e.name,
                )
            insert(
                "kernel_dispatch",
                nid=node,
                pid=processes[e.pid],
                tid=thread,
                agent_id=gpu,
                kernel_id=symbols[e.name],
                dispatch_id=1,
                queue_id=queues[(e.pid, e.queue)],
                stream_id=streams[(e.pid, e.stream)],
                start=e.start,
                end=e.end,
                workgroup_size_x=e.workgroup,
                workgroup_size_y=1,
                workgroup_size_z=1,
                grid_size_x=e.grid,
                grid_size_y=1,
                grid_size_z=1,
                region_name_id=string("region"),
                event_id=event,
            )
        elif e.layer == "copy":
            insert(
                "memory_copy",
                nid=node,
                pid=processes[e.pid],
                tid=thread,
                start=e.start,
                end=e.end,
                name_id=string("MEMORY_COPY_" + e.name),
                dst_agent_id=gpu,
                src_agent_id=cpu,
                size=e.size,
                stream_id=streams[(e.pid, e.stream)],
                event_id=event,
            )
        else:
            insert(
                "region",
                nid=node,
                pid=processes[e.pid],
                tid=thread,
                start=e.start,
                end=e.end,
                name_id=string(e.name),
                event_id=event,
            )
    database.commit()
    database.close()
    return [path]


FTRACE = """# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
    my-prog-1234      [003] .....   100.000100: drm_sched_job: entity=00000000aa, id=1, fence=00000000f1, ring=sdma0, job count:1, hw job count:0
           sdma0-300  [001] .....   100.000150: drm_run_job: entity=00000000aa, id=1, fence=00000000f1, ring=sdma0, job count:0, hw job count:1
    my-prog-1234      [003] .....   100.000200: drm_sched_job: entity=00000000bb, id=2, fence=00000000f2, ring=comp_1.0.0, job count:1, hw job count:0
    comp_1.0.0-301    [001] .....   100.000300: drm_run_job: entity=00000000bb, id=2, fence=00000000f2, ring=comp_1.0.0, job count:0, hw job count:1
          <idle>-0    [001] d.h1.   100.000350: drm_sched_process_job: fence=00000000f1 signaled
          <idle>-0    [001] d.h1.   100.000900: drm_sched_process_job: fence=00000000f2 signaled
    my-prog-1234      [003] .....   100.001000: drm_sched_job: entity=00000000bb, id=3, fence=00000000f3, ring=comp_1.0.0, job count:1, hw job count:0
"""

FTRACE_NEW = """# tracer: nop
    my-prog-1234      [003] .....   100.000100: drm_sched_job_queue: dev=0000:0b:00.0, fence=10:1, ring=sdma0, job count:1, hw job count:0, client_id:5
           sdma0-300  [001] .....   100.000150: drm_sched_job_run: dev=0000:0b:00.0, fence=10:1, ring=sdma0, job count:0, hw job count:1, client_id:5
          <idle>-0    [001] d.h1.   100.000350: drm_sched_job_done: fence=10:1
"""

FTRACE_AMDGPU = """# tracer: nop
    my-prog-1234 (   1234) [003] .....   100.000100: amdgpu_cs_ioctl: sched_job=7, timeline=gfx_0.0.0, context=12, seqno=5, ring_name=gfx_0.0.0, num_ibs=1
       gfx_0.0.0-300  (-------) [001] .....   100.000150: amdgpu_sched_run_job: sched_job=7, timeline=gfx_0.0.0, context=12, seqno=5, ring_name=gfx_0.0.0, num_ibs=1
          <idle>-0    (-------) [001] d.h1.   100.000350: dma_fence_signaled: driver=drm_sched timeline=gfx_0.0.0 context=12 seqno=5
"""

RECORD = """{ "gpreempt_record": 1, "version": "0.1.0", "status": {"devices": []} }
{ "t_ns": 3000, "gpu_id": 51966, "event": "busy", "why": null, "pid": 1002, "name": "train", "queue_id": 0, "priority": 20, "other": null, "value": 0, "text": "train has work" }
{ "t_ns": 900000, "gpu_id": 51966, "event": "busy", "why": null, "pid": 1001, "name": "serve", "queue_id": 3, "priority": 80, "other": null, "value": 0, "text": "serve has work" }
{ "t_ns": 1020500, "gpu_id": 51966, "event": "closed", "why": "priority", "pid": 1002, "name": "train", "queue_id": 0, "priority": 20, "other": null, "value": 120000, "text": "x" }
{ "t_ns": 1020600, "gpu_id": 51966, "event": "inversion", "why": null, "pid": 1001, "name": "serve", "queue_id": 3, "priority": 80, "other": {"pid": 1002, "queue_id": 0}, "value": 120500, "text": "x" }
{ "t_ns": 2000000, "gpu_id": 51966, "event": "idle", "pid": 1001, "name": "serve", "queue_id": 3, "priority": 80, "value": 0 }
{ "t_ns": 2500000, "gpu_id": 51966, "event": "opened", "pid": 1002, "name": "train", "queue_id": 0, "priority": 20, "value": 0 }
{ "t_ns": 4000000, "gpu_id": 51966, "event": "idle", "pid": 1002, "name": "train", "queue_id": 0, "priority": 20, "value": 0 }
{ "event": "end", "value": 7, "te"""


def dmesg_of(oversubscribed_us: int, failed_us: int) -> str:
    """A log on the clock of the generated runs, so many microseconds after their origin."""
    seconds = T0 // 10**9
    return (
        f"[{seconds}.{oversubscribed_us:06}] amdgpu: Runlist is getting oversubscribed. Expect reduced ROCm performance.\n"
        f"[{seconds}.{failed_us:06}] amdgpu 0000:0b:00.0: amdgpu: cp queue preemption time out\n"
    )


DMESG = """[    0.000000] Linux version 6.12.12
[   10.000000] amdgpu 0000:0b:00.0: amdgpu: enable_mes =0
[  120.500000] amdgpu: Runlist is getting oversubscribed due to too many queues. Expect reduced ROCm performance.
[  121.000000] amdgpu 0000:0b:00.0: amdgpu: cp queue preemption time out
[  122.000000] usb 1-1: new device
"""
