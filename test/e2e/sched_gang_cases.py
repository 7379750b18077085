# SPDX-License-Identifier: MIT
"""Cases of test/e2e/sched about programs that wait for each other: ranks of a job, programs that share memory."""
import json
import os

from sched_cases import AGELESS, Stage, case, managed, must


def apart(events, pids):
    """How often the urgent program had its work done while one of these processes was closed and another open, and no order was under way that would change it."""
    wants, under_way, found = {pid: "open" for pid in pids}, set(), 0
    for event in events:
        queue = event["pid"], event["gpu_id"], event["queue_id"]
        if event["pid"] in wants and event["event"] in ("close", "open"):
            wants[event["pid"]] = event["event"]
            under_way.add(queue)
        elif event["pid"] in wants and event["event"] in ("closed", "opened", "order-failed"):
            under_way.discard(queue)
        elif event["pid"] not in wants and event["event"] == "idle":  # the urgent program's
            found += len(set(wants.values())) > 1 and not under_way
    return found


def serve_beside(stage, programs, pids, path, requests):
    """An urgent program beside programs that end when PATH.end is there; all are exact. The daemon's events, from the first queue of these pids on."""
    urgent = stage.serve(["-p", "80"], rate=40, requests=requests, extra={"GPU_MAX_HW_QUEUES": "1"})
    status = urgent.wait()
    must(status == 0 and urgent.result()["wrong"] == 0, urgent.tail())
    events = [json.loads(line) for line in stage.ask("events", "--json").stdout.splitlines()]
    must(any(event["event"] == "queue-add" and event["pid"] in pids for event in events), "the daemon has forgotten the beginning")
    open(path + ".end", "w", encoding="ascii").close()
    for program in programs:
        must(program.wait() == 0, program.tail())
    must(stage.node()["total"]["violations"] == 0, "the node saw a workgroup that did not run exactly once")
    return events


def ranks_beside_urgent(build, settings):
    """Four ranks on four GPUs, one of which an urgent program uses for 200 requests at random times: (how often the ranks were apart for one, closes for urgent work)."""
    with Stage(build, dilation=1, gpus=4) as stage:
        stage.daemon({**AGELESS, "policy.overhead": "1000", **settings})
        path = stage.file("shared")
        with open(path, "wb") as file:
            file.write(bytes(4096))
        job = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500", "WORLD_SIZE": "4", "GPU_MAX_HW_QUEUES": "1"}
        ranks = [stage.start(stage.managed([os.path.join(stage.build, "test", "e2e", "ranks"), str(i), "4", path], ["-p", "20"]), "rank", extra={**job, "RANK": str(i)})
                 for i in range(4)]
        for rank in ranks:
            rank.wait_line("ready")
        clients = [stage.client(rank, managed(stage, *ranks)) for rank in ranks]
        must(all(queue["gate"] == "open" for client in clients for queue in client["queues"]), "all are open at first")
        pids = {client["pid"] for client in clients}
        open(path + ".go", "w", encoding="ascii").close()
        events = serve_beside(stage, ranks, pids, path, 200)
        return apart(events, pids), sum(event["event"] == "close" and event["why"] == "a more urgent queue has work" for event in events)


@case
def ranks(build):
    """Kernels that spin until their peers on other GPUs are there, beside an urgent program on one of these: the ranks are put aside and come back together, whatever the
    arrivals, and end with exact results. Without gangs one is left behind."""
    together, closed = ranks_beside_urgent(build, {})
    must(closed, "with gangs nothing was closed")
    without, closed = ranks_beside_urgent(build, {"daemon.auto_gang": "no"})
    must(closed, "without gangs nothing was closed")
    # A request that ends while they move may find them so, now and then.
    must(5 * together < without, "the ranks were apart for %d requests, without gangs for %d" % (together, without))


def pair_beside_urgent(build, settings):
    """Two programs with one buffer of HIP IPC beside an urgent one: (how often they were apart for a request, their gangs)."""
    with Stage(build, dilation=1) as stage:
        stage.daemon({**AGELESS, "policy.overhead": "1000", **settings})
        path = stage.file("shared")
        with open(path, "wb") as file:
            file.write(bytes(4096))
        pair = [stage.start(stage.managed([os.path.join(stage.build, "test", "e2e", "ipc-pair"), str(role), path], ["-p", "20"]), "role%d" % role,
                            extra={"GPU_MAX_HW_QUEUES": "1"}) for role in range(2)]
        for program in pair:
            program.wait_line("ready")
        clients = [stage.client(program, managed(stage, *pair)) for program in pair]
        pids = {client["pid"] for client in clients}
        events = serve_beside(stage, pair, pids, path, 100)
        return apart(events, pids), [client["gang"] for client in clients]


@case
def shares(build):
    """Programs that were started apart and exchange a buffer by HIP IPC are a gang: put aside and back together for urgent work, with exact results. With gangs off they
    take turns, and one is left spinning."""
    together, gangs = pair_beside_urgent(build, {})
    must(gangs[0] and gangs[0] == gangs[1], "the gangs are %s" % gangs)
    without, gangs = pair_beside_urgent(build, {"daemon.auto_gang": "no"})
    must(gangs == [None, None], "without gangs they are %s" % gangs)
    must(5 * together < without, "they were apart for %d requests, without gangs for %d" % (together, without))
