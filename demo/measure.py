# SPDX-License-Identifier: MIT
"""Runs a scenario on the stage, alone, with stock scheduling and with gpreempt, and the same scenario in the simulator.

Programs run in real time; everything told here is device time: real time over the dilation.
"""
import json
import os
import subprocess
from collections.abc import Iterable

from stage import Program, Stage, Trouble

GROUP = 256  # work items of a workgroup: program.h
PER_UNIT = 4  # workgroups of the programs' kernels on a compute unit: 128 registers, four waves each
UNITS = {"mi210": 104, "mi300x": 304}
TITLES = {"mi210": "AMD Instinct MI210 (virtual)", "mi300x": "AMD Instinct MI300X (virtual)"}
ROUNDS = 4  # of the trainer's kernel
TRAIN_NS = 20_000_000  # kernels.ini: rounds x 5 ms
LAYER_NS = 500_000  # kernels.ini
LAYERS = 4  # kernels of a request
WARM = 3  # requests of serve that do not count
WARM_NS = 100_000_000  # simulated: how long trainers run before the first of those
LATE = 60.0  # seconds, real: what starting and ending may take


class Client:
    """One program of a scenario. rate: requests per second of device time; None: a trainer."""

    def __init__(self, name, priority, rate=None, options=(), mix=(), program=None, seed=1, layers=LAYERS):
        self.name, self.priority, self.rate = name, priority, rate
        self.options, self.mix, self.seed, self.layers = list(options), list(mix), seed, layers
        self.program = program or ("train" if rate is None else "serve")
        self.hint = None  # seconds, real

    def is_service(self) -> bool:
        return self.rate is not None


def serve_and_train(rate: float = 50) -> list[Client]:
    return [Client("serve", 80, rate), Client("train", 20)]


def figures(text: str) -> dict[str, dict[str, dict]]:
    """The JSON of a result (docs/json.md) as {run: {client: figures}}."""
    return {run["policy"]: {c["name"]: c for c in run["clients"]} for run in json.loads(text)["runs"]}


def quantile(values: Iterable[float], share: float) -> float | None:
    """As serve itself: the smallest value that so many are at or below."""
    ordered = sorted(values)
    if not ordered:
        return None
    rank = -int(-share * len(ordered) // 1)
    return ordered[max(rank, 1) - 1]


def begin(stage: Stage, client: Client, seconds: float, managed: bool) -> Program:
    options = ["-p", str(client.priority), "-q", *client.options] if managed else None
    if client.is_service():
        more = {"hint": client.hint} if client.hint else {}
        return stage.serve(
            options,
            client.name,
            client.program,
            rate=client.rate / stage.dilation,
            seconds=seconds * stage.dilation,
            seed=client.seed,
            kernels=client.layers,
            **more,
        )
    return stage.train(options, client.name, client.program, rounds=ROUNDS)


def finish(program: Program, client: Client, stage: Stage, window: tuple[int, int]) -> dict:
    """Its figures in device time; window: real time (begin, end) that trainers are counted in."""
    result = program.result()
    if result["wrong"]:
        raise Trouble("%s computed %d wrong elements" % (client.name, result["wrong"]))
    start, end = window
    seconds = (end - start) / stage.dilation / 1e9
    found = {"name": client.name, "priority": client.priority}
    if client.is_service():
        latency = [value // stage.dilation for value in result["latency_ns"]]
        offsets = [value // stage.dilation for value in result["due_ns"]]
        return found | {
            "kind": "service",
            "requests": len(latency),
            "latency_ns": latency,
            "offset_ns": offsets,
            "per_s": len(latency) / seconds,
            "share": len(latency) * client.layers * LAYER_NS / 1e9 / seconds,
        }
    done = result["done_ns"]
    count = sum(start <= moment < end for moment in done)
    # The part of a kernel at either end, by the kernel it belongs to.
    for edge, sign in ((start, -1), (end, 1)):
        before = max((m for m in done if m < edge), default=result["begin_ns"])
        after = min((m for m in done if m >= edge), default=None)
        if after is not None and after > before:
            count += sign * (edge - before) / (after - before)
    return found | {
        "kind": "batch",
        "requests": count,
        "per_s": count / seconds,
        "share": count * TRAIN_NS / 1e9 / seconds,
    }


def together(stage: Stage, clients: list[Client], seconds: float, managed: bool) -> dict:
    """All clients beside each other. Trainers first; services when those run; trainers end when the services have."""
    real = seconds * stage.dilation
    programs = {}
    for client in sorted(clients, key=Client.is_service):
        programs[client.name] = begin(stage, client, seconds, managed)
        programs[client.name].wait_line("ready", LATE)
    services = [programs[c.name] for c in clients if c.is_service()]
    # A service that cannot keep up ends late; ten times is too late.
    for program in services:
        if program.wait(real * 10 + LATE):
            raise Trouble("%s failed; %s" % (program.name, program.tail()))
    before = stage.status() if managed else None
    if services:
        window = (max(p.result()["begin_ns"] for p in services), min(p.result()["end_ns"] for p in services))
    for client in clients:
        if not client.is_service() and programs[client.name].end(LATE):
            raise Trouble("%s failed; %s" % (client.name, programs[client.name].tail()))
    stage.programs = [p for p in stage.programs if p.is_running()]
    found = [finish(programs[c.name], c, stage, window) for c in clients]
    return {
        "duration_ns": (window[1] - window[0]) // stage.dilation,
        "clients": found,
        "status": before,
        "node": stage.node(),
    }


def alone(stage: Stage, client: Client, seconds: float) -> dict:
    if client.is_service():
        return together(stage, [client], seconds, False)["clients"][0]
    program = stage.train(None, client.name, client.program, rounds=ROUNDS, seconds=seconds * stage.dilation)
    if program.wait(seconds * stage.dilation + 2 * LATE):
        raise Trouble("%s failed; %s" % (client.name, program.tail()))
    result = program.result()
    return finish(program, client, stage, (result["begin_ns"], result["done_ns"][-1]))


# The simulator's side.


def warm_offsets(client: Client, moments: Iterable[int]) -> list[int]:
    """When the requests of a service arrive, those of its warm-up ahead: beside running trainers, one after the other, far enough apart that each
    is over before the next."""
    gap = round(2e9 / client.rate)
    return [WARM_NS + i * gap for i in range(WARM)] + [WARM_NS + WARM * gap + moment for moment in moments]


def warm_seconds(clients: Iterable[Client]) -> float:
    return (WARM_NS + max((WARM * round(2e9 / c.rate) for c in clients if c.is_service()), default=0)) / 1e9


def mix_text(clients: list[Client], device: str, seconds: float, offsets: dict[str, list[int]]) -> str:
    """The same workload as a mix file. offsets: {name: when its requests arrived}, with the warm-up of the programs, or Poisson where there are
    none. Seconds are without the warm-up."""
    copy = UNITS[device] * PER_UNIT * GROUP * 4
    lines = [
        "# SPDX-License-Identifier: MIT",
        "# Written by demo/measure.py: what the programs of demo/ do.",
        "[mix]",
        "title = demo/serve beside demo/train",
        "duration = %gs" % (seconds + (warm_seconds(clients) if offsets else 0)),
        "",
    ]
    for client in clients:
        lines += ["[client %s]" % client.name, "priority = %d" % client.priority, *client.mix]
        if client.is_service():
            moments = offsets.get(client.name)
            if moments:
                moments = warm_offsets(client, moments)
                arrival = ["warm = %d" % WARM] + [
                    "offsets = " + " ".join("%dns" % moment for moment in moments[i : i + 8])
                    for i in range(0, len(moments), 8)
                ]
            else:
                arrival = ["arrival = poisson", "rate = %g/s" % client.rate]
            lines += [
                "kind = service",
                *arrival,
                "step = copy %dB to-device" % copy,
                "step = kernel full 0.5ms x%d" % client.layers,
                "step = copy %dB to-host" % copy,
            ]
        else:
            lines += ["kind = batch", "depth = 2", "step = kernel full/%d 20ms" % ROUNDS]
            if offsets:
                # As many of its kernels as fit into the warm-up, among those of all trainers.
                trainers = sum(not other.is_service() for other in clients)
                lines += ["warm = %d" % (warm_seconds(clients) * 1e9 / TRAIN_NS / trainers)]
        lines += [""]
    return "\n".join(lines)


def simulate(
    build: str,
    folder: str,
    clients: list[Client],
    device: str,
    seconds: float,
    compare: Iterable[str],
    options: Iterable[str] = (),
    seed: int = 7,
    offsets: dict[str, list[int]] | None = None,
) -> dict[str, dict[str, dict]]:
    path = os.path.join(folder, "demo.ini")
    with open(path, "w", encoding="utf-8") as file:
        file.write(mix_text(clients, device, seconds, offsets or {}))
    command = [
        os.path.join(build, "cli", "gpreempt"),
        "sim",
        "--mix",
        path,
        "--device",
        device,
        "--compare",
        ",".join(compare),
        "--seed",
        str(seed),
        "--json",
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Trouble("%s: %s" % (" ".join(command), done.stderr.strip()))
    return figures(done.stdout)


# The table.


def table_text(
    runs: Iterable[tuple], device: str, dilation: float, mix: str = "serve+train", gate: str = "", seed: int = 1
) -> str:
    """What gpreempt-demo-table reads. runs: [(name, duration_ns, clients, stats or None)]."""
    lines = ["device " + device, "title " + TITLES[device], "mix " + mix, "dilate %d" % dilation, "seed %d" % seed]
    if gate:
        lines.append("gate " + gate)
    for name, duration, clients, stats in runs:
        stats = stats or {
            "preemptions": 0,
            "inversions": 0 if name == "alone" else -1,
            "inversion_ns": 0,
            "inversion_ns_max": 0,
        }
        lines.append(
            "run %s %d %d %d %d %d"
            % (
                name,
                duration,
                stats["preemptions"],
                stats["inversions"],
                stats["inversion_ns"],
                stats["inversion_ns_max"],
            )
        )
        for client in clients:
            lines.append(
                "client %s %d %s %d %d %d 0"
                % (
                    client["name"],
                    client["priority"],
                    client["kind"],
                    round(client["requests"]),
                    round(client["per_s"] * 1000),
                    min(round(client["share"] * 1e6), 1000000),
                )
            )
            lines += ["latency %d" % value for value in client.get("latency_ns", ())]
    return "\n".join(lines) + "\n"
