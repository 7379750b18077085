# SPDX-License-Identifier: MIT
"""Cases of test/e2e/sched about programs that wait for each other: ranks of a job, programs that share memory."""
import json
import os
import signal
from typing import Any

from sched_cases import AGELESS, ENDLESS, Stage, case, end_exact, managed, must, wait_progress
from stage import Program, wait_for

ARRIVALS = int(os.environ.get("SCHED_ARRIVALS", "60"))  # make ranks-test: 200
SEED = int(os.environ.get("SCHED_SEED", "1"))


def past(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stage.ask("events", "--json").stdout.splitlines()]


def serve_beside(
    stage: Stage, programs: list[Program], pids: set[int], path: str, requests: int
) -> tuple[list[dict[str, Any]], int, dict[int, int]]:
    """An urgent program beside programs that end when PATH.end is there; all are exact. The daemon's events, from the first queue of these pids on, when it began, and how
    often the node took the queues of each process off before the programs ended."""
    since = past(stage)[-1]["t_ns"]
    urgent = stage.serve(["-p", "80"], rate=40, requests=requests, seed=SEED, extra={"GPU_MAX_HW_QUEUES": "1"})
    status = urgent.wait()
    must(status == 0 and urgent.result()["wrong"] == 0, urgent.tail())
    events = past(stage)
    must(
        any(event["event"] == "queue-add" and event["pid"] in pids for event in events),
        "the daemon has forgotten the beginning",
    )
    taken_off = {}
    for queue in stage.node()["queues"]:
        taken_off[queue["pid"]] = taken_off.get(queue["pid"], 0) + queue["taken_off"]
    open(path + ".end", "w", encoding="ascii").close()
    for program in programs:
        must(program.wait() == 0, program.tail())
    must(stage.node()["total"]["violations"] == 0, "the node saw a workgroup that did not run exactly once")
    return events, since, taken_off


class Gates:
    """The gates of some programs' queues, as the events of a daemon tell: when one was closed and another open, and what others' work the daemon saw begin or end
    meanwhile, while no gate of their GPUs was under way."""

    def __init__(self, events, pids):
        self.pids, self.gpus = pids, {event["gpu_id"] for event in events if event["pid"] in pids}
        self.gates, self.under_way = {}, set()
        self.times = []  # apart: [began, looks with edges of others' work while no gate moved, the last of these]
        self.apart = None
        for event in events:
            if event["gpu_id"] in self.gpus:
                self.take(event)

    def take(self, event: dict[str, Any]) -> None:
        queue, name = (event["pid"], event["gpu_id"], event["queue_id"]), event["event"]
        if self.apart and not self.under_way and event["pid"] not in self.pids:
            if name in ("busy", "idle") and event["t_ns"] != self.apart[2]:  # one look may see work come and go
                self.apart[1], self.apart[2] = self.apart[1] + 1, event["t_ns"]
        if name in ("close", "open"):
            self.under_way.add(queue)
        elif name in ("closed", "opened", "order-failed", "queue-remove"):
            self.under_way.discard(queue)
        if event["pid"] not in self.pids:
            return
        if name in ("queue-add", "opened"):
            self.gates[queue] = "open"
        elif name == "closed":
            self.gates[queue] = "closed"
        elif name == "queue-remove":
            self.gates.pop(queue, None)
        differ = len(set(self.gates.values())) > 1
        if differ and not self.apart:
            self.apart = [event["t_ns"], 0, None]
            self.times.append(self.apart)
        elif not differ:
            self.apart = None


def left_apart(events: list[dict[str, Any]], pids: set[int], since: int) -> int:
    """How often they were apart beyond what their gates needed to move: no gate was under way, the daemon saw others' work begin or end twice, and ordered nothing. (Once may
    be in the same look as the answer of the last gate.) No time decides that: a daemon that is not given the processor sees nothing, either.
    """
    times = [time for time in Gates(events, pids).times if time[0] > since]
    left = sum(time[1] > 1 for time in times)
    print(
        "  apart %d times, %d times while no gate moved and others worked; %d changes of their work at most"
        % (len(times), left, max([time[1] for time in times], default=0)),
        flush=True,
    )
    return left


def preempted(events: list[dict[str, Any]], pids: set[int]) -> int:
    return sum(
        event["event"] == "close" and event["pid"] in pids and event["why"] == "a more urgent queue has work"
        for event in events
    )


def ranks_beside_urgent(build: str, settings: dict[str, str]) -> tuple[int, int]:
    """Four ranks on four GPUs, one of which an urgent program uses for requests at random times: (how often they were left apart, how often a rank was closed for urgent work)."""
    with Stage(build, dilation=1, gpus=4) as stage:
        stage.daemon({**AGELESS, "policy.overhead": "1000", **settings})
        path = stage.file("shared")
        with open(path, "wb") as file:
            file.write(bytes(4096))
        job = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500", "WORLD_SIZE": "4", "GPU_MAX_HW_QUEUES": "1"}
        ranks = [
            stage.start(
                stage.managed([os.path.join(stage.build, "test", "e2e", "ranks"), str(i), "4", path], ["-p", "20"]),
                "rank",
                extra={**job, "RANK": str(i)},
            )
            for i in range(4)
        ]
        for rank in ranks:
            rank.wait_line("ready")
        clients = [stage.client(rank, managed(stage, *ranks)) for rank in ranks]
        must(all(queue["gate"] == "open" for client in clients for queue in client["queues"]), "all are open at first")
        pids = {client["pid"] for client in clients}
        open(path + ".go", "w", encoding="ascii").close()
        events, since, _ = serve_beside(stage, ranks, pids, path, ARRIVALS)
        return left_apart(events, pids, since), preempted(events, pids)


@case
def ranks(build: str) -> None:
    """Kernels that spin until their peers on other GPUs are there, beside an urgent program on one of these: the ranks are put aside and come back together, whatever the
    arrivals, and end with exact results. Without gangs one is left behind, and the same look says so."""
    print("%d arrivals from seed %d" % (ARRIVALS, SEED), flush=True)
    left, count = ranks_beside_urgent(build, {})
    must(count, "with gangs nothing was closed")
    must(not left, "the ranks were left apart %d times" % left)
    left, count = ranks_beside_urgent(build, {"daemon.auto_gang": "no"})
    must(count, "without gangs nothing was closed")
    must(left, "without gangs the ranks were never left apart: the look sees nothing")
    print("without gangs they were left apart %d times" % left)


@case
def rank_unknown(build: str) -> None:
    """A rank without an agent beside one that is scheduled: `status` and the journal name it, it is never closed, and both end with exact results."""
    with Stage(build, dilation=1, gpus=2) as stage:
        daemon = stage.daemon({**AGELESS, "policy.overhead": "1000"})
        path = stage.file("shared")
        with open(path, "wb") as file:
            file.write(bytes(4096))
        job = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29501", "WORLD_SIZE": "2", "GPU_MAX_HW_QUEUES": "1"}
        program = os.path.join(stage.build, "test", "e2e", "ranks")
        known, stranger = (
            stage.start(stage.managed([program, str(i), "2", path], options), "rank", extra={**job, "RANK": str(i)})
            for i, options in enumerate((["-p", "20"], None))
        )
        for rank in (known, stranger):
            rank.wait_line("ready")
        managed(stage, known)
        own, pid = known.pid(), stranger.pid()

        def listed():
            return next((u for u in stage.status()["unmanaged"] if u["pid"] == pid), None)

        first = wait_for("it is listed", listed)
        must(first["rank_of"] == "torch job localhost:29501", "at once it is named: %s" % first)
        wait_for("no agent is awaited any more", lambda: not listed()["agent_awaited"])
        said = "belongs to torch job localhost:29501"
        must(
            "pid %d (ranks) %s, but has no agent" % (pid, said) in stage.ask("status").stdout,
            stage.ask("status").stdout,
        )
        wait_for(
            "the journal names it",
            lambda: "process %d (ranks, uid %d) %s and has no agent" % (pid, os.getuid(), said) in daemon.tail(),
        )
        open(path + ".go", "w", encoding="ascii").close()
        events, _, taken_off = serve_beside(stage, [known, stranger], {own}, path, ARRIVALS)
        print("  taken off: the known rank %d times, the other %d times" % (taken_off[own], taken_off[pid]), flush=True)
        must(not taken_off[pid], "the unknown rank was closed %d times" % taken_off[pid])
        must(taken_off[own] and preempted(events, {own}), "the known rank was never closed")


@case
def rank_stopped(build: str) -> None:
    """SIGSTOP of a rank whose agent changes its gates: its queues cannot be put aside, so those of its peer on another GPU are not, either; both are in quarantine, and the
    events say why. After SIGCONT both are put aside again for urgent work, and end with exact results."""
    with Stage(build, dilation=1, gpus=2, mechanism="self", hasty=True) as stage:
        stage.daemon({**AGELESS, "policy.overhead": "1000"})
        path = stage.file("shared")
        with open(path, "wb") as file:
            file.write(bytes(4096))
        job = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29502", "WORLD_SIZE": "2", "GPU_MAX_HW_QUEUES": "1"}
        program = os.path.join(stage.build, "test", "e2e", "ranks")
        ranks_of = [
            stage.start(
                stage.managed([program, str(i), "2", path], ["-p", "20"]), "rank", extra={**job, "RANK": str(i)}
            )
            for i in range(2)
        ]
        for rank in ranks_of:
            rank.wait_line("ready")
        clients = [stage.client(rank, managed(stage, *ranks_of)) for rank in ranks_of]
        must(clients[0]["gang"] and clients[0]["gang"] == clients[1]["gang"], "one gang: %s" % clients)
        pids = [client["pid"] for client in clients]

        def queues(pid):
            return [q for c in stage.status()["clients"] if c["pid"] == pid for q in c["queues"]]

        def closes(pid):
            return sum(queue["closes"] for queue in queues(pid))

        open(path + ".go", "w", encoding="ascii").close()
        urgent = stage.serve(["-p", "80"], closed=0.02, seconds=ENDLESS, extra={"GPU_MAX_HW_QUEUES": "1"})
        urgent.wait_line("ready")
        ranks_of[1].signal(signal.SIGSTOP)
        try:
            wait_for(
                "both are in quarantine", lambda: all(q["gate"] == "quarantined" for pid in pids for q in queues(pid))
            )
            before = closes(pids[0])
            why = {e["why"] for e in past(stage) if e["event"] == "quarantine" and e["pid"] == pids[0]}
            must(why == {"it, or another member of its gang, cannot be preempted"}, "why: %s" % why)
            wait_progress(stage, urgent)
            must(closes(pids[0]) == before, "the peer was put aside meanwhile")
        finally:
            ranks_of[1].signal(signal.SIGCONT)
        since = [closes(pid) for pid in pids]
        wait_for("both are put aside again", lambda: all(closes(p) > s + 1 for p, s in zip(pids, since)))
        end_exact(urgent)
        open(path + ".end", "w", encoding="ascii").close()
        for rank in ranks_of:
            must(rank.wait() == 0, rank.tail())


def pair_beside_urgent(build: str, settings: dict[str, str]) -> tuple[int, list[str]]:
    """Two programs with one buffer of HIP IPC beside an urgent one: (how often they were left apart, their gangs)."""
    with Stage(build, dilation=1) as stage:
        stage.daemon({**AGELESS, "policy.overhead": "1000", **settings})
        path = stage.file("shared")
        with open(path, "wb") as file:
            file.write(bytes(4096))
        pair = [
            stage.start(
                stage.managed([os.path.join(stage.build, "test", "e2e", "ipc-pair"), str(role), path], ["-p", "20"]),
                "role%d" % role,
                extra={"GPU_MAX_HW_QUEUES": "1"},
            )
            for role in range(2)
        ]
        for program in pair:
            program.wait_line("ready")
        clients = [stage.client(program, managed(stage, *pair)) for program in pair]
        pids = {client["pid"] for client in clients}
        events, since, _ = serve_beside(stage, pair, pids, path, ARRIVALS)
        return left_apart(events, pids, since), [client["gang"] for client in clients]


@case
def shares(build: str) -> None:
    """Programs that were started apart and exchange a buffer by HIP IPC are a gang: put aside and back together for urgent work, with exact results. With gangs off they
    take turns, and one is left spinning."""
    print("%d arrivals from seed %d" % (ARRIVALS, SEED), flush=True)
    left, gangs = pair_beside_urgent(build, {})
    must(gangs[0] and gangs[0] == gangs[1], "the gangs are %s" % gangs)
    must(not left, "they were left apart %d times" % left)
    left, gangs = pair_beside_urgent(build, {"daemon.auto_gang": "no"})
    must(gangs == [None, None], "without gangs they are %s" % gangs)
    must(left, "without gangs they were never left apart: the look sees nothing")
    print("without gangs they were left apart %d times" % left)
