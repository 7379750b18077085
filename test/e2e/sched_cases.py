# SPDX-License-Identifier: MIT
"""The cases of test/e2e/sched: what each shows is said at its head. States are waited for; how long it takes decides nothing."""
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

import stage as stages
from stage import PATIENCE, Program, Trouble, wait_for


class Skipped(Exception):
    """What the case needs is not here."""


class Stage(stages.Stage):
    """Nothing runs out because the machine stalls: gates are closed and opened by orders alone, and each order is answered in time.
    hasty: as a daemon is by itself, where a case is about what happens when somebody does not answer."""

    def __init__(self, build, hasty=False, **options):
        super().__init__(build, **options)
        self.hasty = hasty

    def configuration(self, settings: dict[str, str]) -> str:
        patient = {} if self.hasty else {"daemon.lease": "60s", "daemon.answer_timeout": "60s"}
        return super().configuration({**patient, **settings})


CASES = {}
FAST = 5  # dilation where nothing is timed
IDLE_S = float(os.environ.get("SCHED_IDLE_S", "3"))  # for how long nothing must happen; 30 by hand
ENDLESS = 100000  # seconds: a service that ends when it is told to, so that it still works when somebody looks
AGELESS = {"policy.age_window": "1h"}  # nobody goes before the urgent one because he has waited for long


def case(function: Callable[[str], None]) -> Callable[[str], None]:
    CASES[function.__name__] = function
    return function


def must(good: Any, what: str) -> None:
    if not good:
        raise Trouble(what)


def exact(*programs: Program) -> None:
    """Each ended well and found its results exact, and the node saw every workgroup run exactly once."""
    for program in programs:
        status = program.wait()
        must(status == 0, "%s ended with status %d; %s" % (program.name, status, program.tail()))
        must(program.result()["wrong"] == 0, program.tail())
    for stage in {program.stage for program in programs}:
        must(stage.node()["total"]["violations"] == 0, "the node saw a workgroup that did not run exactly once")


def end_exact(*programs: Program) -> None:
    for program in programs:
        program.end()
    exact(*programs)


# What the node itself says of a program's gates; the daemon is not asked.


def stopped(stage: Stage, program: Program) -> list[dict]:
    """Its queues that are suspended (debugger, self) or at 0 % (update)."""
    return [queue for queue in stage.queues(program) if queue["suspended"] or queue["percent"] == 0]


def is_shut(stage: Stage, program: Program) -> bool:
    """A queue of it with work is stopped. Idle ones may be: their doorbells open them."""
    return any(queue["submitted"] > queue["read"] for queue in stopped(stage, program))


def is_all_open(stage: Stage, *programs: Program) -> bool:
    return not any(stopped(stage, program) for program in programs)


def packets(stage: Stage, program: Program) -> int:
    return sum(queue["packets"] for queue in stage.queues(program))


def wait_progress(stage: Stage, program: Program, more: int = 4) -> None:
    begin = packets(stage, program)
    wait_for("%s goes on; %s" % (program.name, program.tail()), lambda: packets(stage, program) >= begin + more)


def wait_shut(stage: Stage, program: Program) -> None:
    wait_for(
        "the gate of %s closes: %s" % (program.name, stage.queues(program)), lambda: is_shut(stage, program), every=0.01
    )


def wait_open(stage: Stage, program: Program) -> None:
    """Whatever of it has work is open."""
    wait_for("the gate of %s opens: %s" % (program.name, stage.queues(program)), lambda: not is_shut(stage, program))


def wait_all_open(stage: Stage, *programs: Program) -> None:
    """Even idle queues."""
    wait_for("all gates open: %s" % stage.node()["queues"], lambda: is_all_open(stage, *programs))


# What the daemon says.


def gates(client: dict) -> set[str]:
    """Of its compute queues that have work."""
    return {queue["gate"] for queue in client["queues"] if queue["kind"] == "compute" and queue["has_work"]}


def managed(stage: Stage, *programs: Program) -> dict:
    """Waits until the daemon has them all, with queues; the status."""

    def asked():
        status = stage.status()
        found = [stage.client(program, status) for program in programs]
        return status if all(c and c["queues"] for c in found) else None

    return wait_for("the agents of %s report; %s" % ([p.name for p in programs], stage.daemons[-1].tail()), asked)


def pair(
    stage: Stage, low: str = "20", high: str = "80", low_options: Sequence[str] = (), high_options: Sequence[str] = ()
) -> tuple[Program, Program]:
    """Two trainers, the second more urgent: the first is held out for as long as the second runs. Both ready and known to the daemon."""
    below = stage.train(["-p", low, *low_options], "low")
    below.wait_line("ready")
    above = stage.train(["-p", high, *high_options], "high")
    above.wait_line("ready")
    managed(stage, below, above)
    return below, above


@case
def alone(build: str) -> None:
    """Requests that overlap, on a device that is slow against the host: barriers are released before the packet processor has come to them."""
    with Stage(build, dilation=20) as stage:
        exact(stage.serve(rate=60, requests=150))


@case
def stock(build: str) -> None:
    """Without a daemon: both programs give exact results beside each other, and `run` changes nothing but a warning."""
    with Stage(build, dilation=FAST) as stage:
        train = stage.train(["-p", "20"], iterations=40)
        train.wait_line("ready")
        exact(stage.serve(["-p", "80"], rate=10, requests=20), train)
        must("warning" in train.output(), "no warning that no daemon runs: " + train.output())


def mechanism(build: str, name: str, unit: str) -> None:
    """Forced: reported, used, gates seen to close and open on the node, results exact, the urgent one never held up."""
    with Stage(build, dilation=10, mechanism=name) as stage:
        stage.daemon()
        train = stage.train(["-p", "20"])
        train.wait_line("ready")
        serve = stage.serve(["-p", "80"], closed=0.05, seconds=ENDLESS)
        status = managed(stage, train, serve)
        device = status["devices"][0]
        must(device["mechanism"] == name and device["unit"] == unit, "mechanism and unit: %s" % device)
        must(
            stage.client(train, status)["mechanism"] == name, "the client's mechanism: %s" % stage.client(train, status)
        )
        if name != "submit":
            wait_shut(stage, train)
            wait_open(stage, train)
            wait_progress(stage, train)
            wait_shut(stage, train)
        wait_for(
            "train is closed and opened",
            lambda: all(any(q[what] for q in stage.client(train)["queues"]) for what in ("closes", "opens")),
        )
        end_exact(serve)
        client = wait_for(
            "train is open again", lambda: next((c for c in [stage.client(train)] if gates(c) == {"open"}), None)
        )
        closes, opens = (sum(q[what] for q in client["queues"]) for what in ("closes", "opens"))
        must(closes == opens or unit == "queue", "closes and opens: %s" % client)
        stats = stage.status()["devices"][0]["stats"]
        must(stats["preemptions"] > 0 or name == "submit", "no preemption: %s" % stats)
        # Submission cannot gate a queue whose doorbells are not seen: those are quarantined.
        must(name == "submit" or (stats["order_failures"] == 0 and stats["quarantines"] == 0), "failures: %s" % stats)
        wait_progress(stage, train)
        end_exact(train)


@case
def kernel(build: str) -> None:
    """A driver with kernel/patches: one call for the gates of all programs."""
    mechanism(build, "kernel", "device")


@case
def debugger(build: str) -> None:
    mechanism(build, "debugger", "process")


@case
def self(build: str) -> None:
    mechanism(build, "self", "process")


@case
def update(build: str) -> None:
    mechanism(build, "update", "queue")


@case
def submit(build: str) -> None:
    mechanism(build, "submit", "queue")


@case
def seven(build: str) -> None:
    """One urgent service and six trainers: all exact, batch clients take turns, all of them get on, the service is never closed."""
    with Stage(build, dilation=FAST) as stage:
        stage.daemon(AGELESS)
        trains = [stage.train(["-p", "20"], "train%d" % i) for i in range(6)]
        for train in trains:
            train.wait_line("ready")
        serve = stage.serve(["-p", "80"], closed=0.1, seconds=ENDLESS)
        managed(stage, serve, *trains)
        begin = stage.status()["devices"][0]["stats"]

        def went_on():
            status = stage.status()
            client, stats = stage.client(serve, status), status["devices"][0]["stats"]
            must(not any(q["closes"] for q in client["queues"]), "the urgent one was closed: %s" % client)
            return stats["turns"] > begin["turns"] + 6 and stats["preemptions"] > begin["preemptions"] + 6

        wait_for("turns and preemptions, since %s" % begin, went_on)
        for train in trains:
            wait_progress(stage, train, 2)
        end_exact(serve)
        end_exact(*trains)


@case
def four(build: str) -> None:
    """Four priorities, all with work: the most urgent is open and the rest closed; when it ends the next one is, and so on."""
    with Stage(build, dilation=FAST) as stage:
        stage.daemon()
        trains = []
        for priority in (10, 30, 60, 90):
            trains.append(stage.train(["-p", str(priority)], "p%d" % priority))
            trains[-1].wait_line("ready")
        managed(stage, *trains)
        while trains:
            top = trains[-1]

            def asked():
                status = stage.status()
                return gates(stage.client(top, status)) == {"open"} and all(
                    gates(stage.client(other, status)) == {"closed"} for other in trains[:-1]
                )

            wait_for("only %s is open: %s" % (top.name, stage.status()["clients"]), asked)
            end_exact(top)
            trains.pop()


def switches(*pids: int) -> dict[tuple[int, str], int]:
    """How often each thread of these processes went to sleep so far."""
    found = {}
    for pid in pids:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, task), encoding="ascii") as file:
                found[pid, task] = int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", file.read(), re.M).group(1))
    return found


def stillness(stage: Stage, pids: Sequence[int]) -> Callable[[], bool]:
    """A question: for a while no thread of these processes wakes up, and the driver is neither called nor changes the runlist, by the node's own counters."""

    def nothing_happens():
        before, calls = switches(*pids), stage.node()
        time.sleep(IDLE_S)
        after, called = switches(*pids), stage.node()
        return (
            before == after
            and calls["total"]["ioctls"] == called["total"]["ioctls"]
            and calls["gpus"][0]["halts"] == called["gpus"][0]["halts"]
        )

    return nothing_happens


@case
def idle(build: str) -> None:
    """Twelve idle servers with more queues than there are slots: queues are parked until the runlist fits, and then nothing happens: no thread of the daemon or of an
    agent wakes up, and the driver is not called. A request after that is served."""
    with Stage(build, dilation=1) as stage:
        stage.daemon(AGELESS)
        servers = [stage.serve(["-p", "50"], rate=0.0001, seconds=ENDLESS) for _ in range(12)]
        for server in servers:
            server.wait_line("ready")
        managed(stage, *servers)
        device = lambda: stage.status()["devices"][0]
        compute = lambda: [
            queue for server in servers for queue in stage.client(server)["queues"] if queue["kind"] == "compute"
        ]
        must(len(compute()) > device()["slot_count"], "fewer queues than slots: %s" % device())
        wait_for(
            "the runlist fits",
            lambda: device()["slots_used"] <= device()["slot_count"] and not device()["oversubscribed"],
        )
        parked = [queue for queue in stage.node()["queues"] if queue["suspended"] or queue["percent"] == 0]
        must(len(parked) >= len(compute()) - device()["slot_count"], "the node says that %d are parked" % len(parked))
        pids = [stage.daemons[-1].pid(), *(server.pid() for server in servers)]

        nothing_happens = stillness(stage, pids)
        wait_for("nothing wakes up, and the runlist is not changed", nothing_happens)
        last = stage.serve(["-p", "50"], requests=3)
        exact(last)
        wait_for("nothing wakes up again", nothing_happens)


@case
def idle_many(build: str) -> None:
    """Two, eight and twenty idle servers: the open queues fit the slots, by the node's own counters, although twenty are more processes than the GPU has places for; no thread
    of the daemon or of an agent wakes up, the driver is not called, and the runlist is not changed. SCHED_IDLE_S=30: for half a minute. Requests after a rest are
    served."""
    with Stage(build, dilation=1) as stage:
        stage.daemon(AGELESS)
        servers = []
        gpu = lambda: stage.node()["gpus"][0]
        for count in (2, 8, 20):
            servers += [stage.serve(["-p", "50"], rate=0.0001, seconds=ENDLESS) for _ in range(count - len(servers))]
            for server in servers:
                server.wait_line("ready")
            managed(stage, *servers)
            device = stage.status()["devices"][0]
            wait_for(
                "the runlist of %d fits" % count,
                lambda d=device: gpu()["runlist_queues"] <= d["slot_count"] and gpu()["slices"] <= 1,
            )
            wait_for(
                "nothing wakes up, and the runlist is not changed",
                stillness(stage, [stage.daemons[-1].pid(), *(server.pid() for server in servers)]),
            )
            must(
                gpu()["runlist_queues"] <= device["slot_count"]
                and gpu()["runlist_processes"] <= device["process_count_max"]
                and gpu()["slices"] <= 1,
                "%d: %s" % (count, gpu()),
            )
            must(
                gpu()["processes"] == count and gpu()["oversubscribed"] == (count > device["process_count_max"]),
                "%d: %s" % (count, gpu()),
            )
        # What is open is what was used last: these take their slots from others, and are served after each of their rests.
        exact(*(stage.serve(["-p", "50"], closed=3, requests=3) for _ in range(3)))


@case
def edf(build: str) -> None:
    """Policy edf: a client with a deadline goes before one without, whatever the priorities; the deadline is in the status."""
    with Stage(build, dilation=FAST) as stage:
        stage.daemon({"policy.policy": "edf", **AGELESS})
        below, above = pair(stage, "50", "50", high_options=("--deadline", "40ms", "--budget", "20ms"))
        status = stage.status()
        must(status["daemon"]["policy"] == "edf", "policy: %s" % status["daemon"])
        must(stage.client(above, status)["deadline_ns"] == 40_000_000, "deadline: %s" % stage.client(above, status))
        wait_shut(stage, below)
        must(not is_shut(stage, above), "the one with the deadline is closed")
        above.end()
        wait_progress(stage, below)
        end_exact(above, below)


@case
def hint(build: str) -> None:
    """A service that says ahead that a request is coming: the trainer is closed for the hint, before there is work."""
    with Stage(build, dilation=FAST) as stage:
        stage.daemon()
        train = stage.train(["-p", "20"])
        train.wait_line("ready")
        managed(stage, train)
        serve = stage.serve(["-p", "80"], program="serve-hint", rate=4, seconds=ENDLESS, hint=0.02)
        wait_for("ten hints", lambda: stage.status()["devices"][0]["stats"]["hints"] >= 10)

        def closed_for_it():
            events = [json.loads(line) for line in stage.ask("events", "--json").stdout.splitlines()]
            return any(e["event"] == "close" and e["why"] == "a more urgent queue announced work" for e in events)

        wait_for("something is closed for a hint", closed_for_it)
        end_exact(serve)
        end_exact(train)


@case
def wfq(build: str) -> None:
    """Policy wfq: who has three times the weight gets more done; both get on."""
    with Stage(build, dilation=FAST) as stage:
        stage.daemon({"policy.policy": "wfq"})
        light, heavy = pair(stage, "50", "50", ("--weight", "100"), ("--weight", "300"))
        begin = packets(stage, light), packets(stage, heavy)

        def uneven():
            """Over all of it: a moment in which one of them could not work for the machine's sake does not count for long."""
            done = packets(stage, light) - begin[0], packets(stage, heavy) - begin[1]
            return done[0] >= 30 and done[1] > 1.5 * done[0]

        wait_for("packets of weight 300 are more than those of weight 100", uneven)
        end_exact(light, heavy)


def kill_daemon(build: str, name: str) -> None:
    """kill -9 of the daemon while a gate is closed: all gates open, results exact, no error; a new daemon gets the agents back."""
    with Stage(build, dilation=FAST, mechanism=name) as stage:
        daemon = stage.daemon()
        below, above = pair(stage)
        for _ in range(3):
            wait_shut(stage, below)
            os.kill(daemon.pid(), signal.SIGKILL)
            daemon.process.wait()
            wait_all_open(stage, below, above)
            wait_progress(stage, below)
            must(is_all_open(stage, below, above), "a gate closed with no daemon there")
            daemon = stage.daemon()
            managed(stage, below, above)
        end_exact(above)
        wait_progress(stage, below)
        end_exact(below)


@case
def daemon_killed_kernel(build: str) -> None:
    kill_daemon(build, "kernel")


@case
def daemon_killed_debugger(build: str) -> None:
    kill_daemon(build, "debugger")


@case
def daemon_killed_self(build: str) -> None:
    kill_daemon(build, "self")


@case
def daemon_killed_update(build: str) -> None:
    kill_daemon(build, "update")


@case
def daemon_killed_anywhere(build: str) -> None:
    """kill -9 of the daemon at twelve moments spread over a preemption and what follows it, the three mechanisms in turn."""
    with Stage(build, dilation=10) as stage:
        train = stage.train(["-p", "20"])
        train.wait_line("ready")
        serve = stage.serve(["-p", "80"], closed=0.02, seconds=ENDLESS)
        serve.wait_line("ready")
        for i in range(12):
            stage.mechanism = ("debugger", "self", "update")[i % 3]
            daemon = stage.daemon()
            managed(stage, train, serve)
            wait_shut(stage, train)
            time.sleep(0.005 * i)
            os.kill(daemon.pid(), signal.SIGKILL)
            daemon.process.wait()
            wait_all_open(stage, train, serve)
            wait_progress(stage, train)
        end_exact(serve)
        end_exact(train)


@case
def daemon_hangs(build: str) -> None:
    """SIGSTOP of the daemon while a gate is closed: its lease runs out and the agent opens it; after SIGCONT it is closed again."""
    with Stage(build, dilation=FAST, mechanism="self", hasty=True) as stage:
        daemon = stage.daemon()
        below, above = pair(stage)
        wait_shut(stage, below)
        os.kill(daemon.pid(), signal.SIGSTOP)
        try:
            wait_open(stage, below)
            wait_progress(stage, below)
        finally:
            os.kill(daemon.pid(), signal.SIGCONT)
        wait_shut(stage, below)
        must(
            stage.status()["daemon"]["counters"]["leases_lost"] > 0,
            "no lost lease counted: %s" % stage.status()["daemon"],
        )
        end_exact(above)
        end_exact(below)


@case
def restart(build: str) -> None:
    """The daemon is replaced three times while both work: the agents come back each time, priorities hold again, results are exact."""
    with Stage(build, dilation=FAST) as stage:
        daemon = stage.daemon()
        below, above = pair(stage)
        for _ in range(3):
            wait_shut(stage, below)
            must(daemon.end() == 0, "gpreemptd did not end well; " + daemon.tail())
            wait_all_open(stage, below, above)
            daemon = stage.daemon()
            managed(stage, below, above)
        wait_shut(stage, below)
        end_exact(above)
        end_exact(below)


@case
def client_killed(build: str) -> None:
    """kill -9 of the urgent client opens the others; kill -9 of a closed one leaves nothing behind and disturbs nobody."""
    with Stage(build, dilation=FAST) as stage:
        stage.daemon()
        below, above = pair(stage)
        wait_shut(stage, below)
        above.kill()
        wait_open(stage, below)
        wait_progress(stage, below)
        again = stage.train(["-p", "80"], "again")
        again.wait_line("ready")
        managed(stage, below, again)
        wait_shut(stage, below)
        below.kill()
        wait_progress(stage, again)
        wait_for("the daemon forgets it", lambda: len(stage.status()["clients"]) == 1)
        end_exact(again)
        wait_for("the node holds nothing", lambda: stage.node()["now"]["queues"] == 0)


@case
def client_stopped(build: str) -> None:
    """SIGSTOP of a client: the others are served, with the agent's own mechanisms too, which is said; after SIGCONT it goes on, exactly."""
    for name in ("debugger", "self", "update"):
        with Stage(build, dilation=FAST, mechanism=name, hasty=True) as stage:
            stage.daemon()
            stopped = stage.train(["-p", "20"], "stopped")
            stopped.wait_line("ready")
            other = stage.train(["-p", "20"], "other")
            other.wait_line("ready")
            managed(stage, stopped, other)
            stopped.signal(signal.SIGSTOP)
            try:
                serve = stage.serve(["-p", "80"], closed=0.02, requests=20)
                exact(serve)
                wait_progress(stage, other)
                wait_for(
                    "it answers through the debugger alone",
                    lambda: stage.client(stopped)["answers"] == (name == "debugger"),
                )
            finally:
                stopped.signal(signal.SIGCONT)
            wait_progress(stage, stopped)
            end_exact(other, stopped)


@case
def node_killed(build: str) -> None:
    """kill -9 of vgpud: the programs are told (status 125), the daemon goes on answering."""
    with Stage(build, dilation=FAST) as stage:
        # Its own session: vgpu run kills its command's process group when the node dies.
        environment = stage.environment()
        path = stage.file("outlives.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(stage.configuration({}))
        daemon = subprocess.Popen(
            stage.on_node(["setsid", "--wait", os.path.join(stage.build, "daemon", "gpreemptd"), "--config", path]),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            pid = wait_for("gpreemptd answers", stage.ping)
            train = stage.train(["-p", "20"])
            train.wait_line("ready")
            listed = subprocess.run([stage.vgpu(), "ls"], capture_output=True, text=True, check=True).stdout
            os.kill(int(re.search(r"^%s +(\d+)" % stage.name, listed, re.MULTILINE).group(1)), signal.SIGKILL)
            must(train.wait() == 125, "status of a program whose node died: %s" % train.process.returncode)
            answer = subprocess.run(
                [stage.gpreempt(), "status", "--json"],
                capture_output=True,
                text=True,
                check=False,
                env=environment,
                timeout=PATIENCE,
            )
            must(
                answer.returncode == 0 and json.loads(answer.stdout)["daemon"]["pid"] == pid, "the daemon: %s" % answer
            )
        finally:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, UnboundLocalError):
                pass
            daemon.kill()
            daemon.wait()


@case
def two_daemons(build: str) -> None:
    """A second daemon on the same socket refuses with a sentence; the first one is not disturbed."""
    with Stage(build, dilation=FAST) as stage:
        first = stage.daemon()
        below, above = pair(stage)
        second = stage.start(
            [os.path.join(stage.build, "daemon", "gpreemptd"), "--config", stage.file("gpreemptd.conf")], "second"
        )
        must(second.wait() == 1, "the second daemon's status: %s; %s" % (second.process.returncode, second.tail()))
        must("gpreemptd:" in second.output(), "no sentence of the second daemon: " + second.output())
        must(stage.ping() == first.pid(), "the first one no longer answers")
        wait_shut(stage, below)
        end_exact(above)
        end_exact(below)


@case
def two_sockets(build: str) -> None:
    """A second daemon with a socket of its own leaves the GPU to the first one and says so; when that ends, it takes over."""
    with Stage(build, dilation=FAST) as stage:
        first = stage.daemon()
        below, above = pair(stage)
        wait_shut(stage, below)
        path = stage.socket
        stage.socket = stage.file("second.sock")
        second = stage.daemon()
        said = "another gpreemptd (pid %d) schedules this GPU" % first.pid()
        must(said in second.output(), "the journal of the second: " + second.tail())
        must(said in stage.ask("status").stdout, stage.ask("status").stdout)
        done = stage.ask("doctor", "mechanism", check=False)
        must(done.returncode == 1 and said in done.stdout, "doctor: " + done.stdout + done.stderr)
        must(stage.ask("resume", "all", check=False).returncode != 0, "the second daemon resumes the GPU of the first")
        wait_shut(stage, below)
        stage.socket = path
        end_exact(above)
        end_exact(below)
        first.end()
        stage.socket = stage.file("second.sock")
        wait_for("the second daemon takes over", lambda: not stage.status()["devices"][0]["stopped"])
        below, above = pair(stage)
        wait_shut(stage, below)
        end_exact(above)
        end_exact(below)


@case
def namespaces(build: str) -> None:
    """A client in a user and PID namespace of its own is managed like any other, by the daemon and by its own agent."""
    for name in ("debugger", "self"):
        namespaces_one(build, name)


def namespaces_one(build: str, name: str) -> None:
    with Stage(build, dilation=FAST, mechanism=name) as stage:
        stage.daemon()
        path = stage.file("inside.json")
        inside = stage.start(
            [
                "unshare",
                "-Upf",
                "--map-root-user",
                "--kill-child",
                stage.gpreempt(),
                "run",
                "-p",
                "20",
                "--",
                stage.program_path("train"),
                "--json",
                path,
            ],
            "inside",
            path,
        )
        inside.wait_line("ready")
        client = wait_for(
            "the client inside reports",
            lambda: next((c for c in stage.status()["clients"] if c["name"] == "train" and c["queues"]), None),
        )
        must(client["priority"] == 20 and client["managed"], "the client inside: %s" % client)
        above = stage.train(["-p", "80"], "high")
        wait_for(
            "it is closed for the urgent one",
            lambda: any(c["priority"] == 20 and "closed" in gates(c) for c in stage.status()["clients"]),
            every=0.01,
        )
        end_exact(above)
        os.kill(
            client["pid"], signal.SIGTERM
        )  # its number out here; the first process inside would be killed with all of them
        exact(inside)


@case
def unmanaged(build: str) -> None:
    """A program that was not started by `run` is listed, with its queues, and left alone."""
    with Stage(build, dilation=FAST) as stage:
        stage.daemon()
        stranger = stage.train(None, "stranger")
        stranger.wait_line("ready")
        pid = stranger.pid()
        entry = wait_for(
            "it is listed",
            lambda: next((u for u in stage.status()["unmanaged"] if u["pid"] == pid and u["queues"]), None),
        )
        must(entry["queues"] == len(stage.queues(stranger)), "its queues: %s, %s" % (entry, stage.queues(stranger)))
        exact(stage.serve(["-p", "80"], closed=0.02, requests=10))
        must(not is_shut(stage, stranger), "it was closed")
        wait_progress(stage, stranger)
        end_exact(stranger)


@case
def unmanaged_kernel(build: str) -> None:
    """The driver stops programs without an agent too, whatever their runtime did, and opens them again; `set` changes their priority."""
    with Stage(build, dilation=FAST, mechanism="kernel") as stage:
        stage.daemon({**AGELESS, "unmanaged.action": "pause", "unmanaged.scan": "100ms"})
        stranger = stage.train(None, "stranger")
        stranger.wait_line("ready")
        pid = stranger.pid()

        def adopted():
            return next(
                (u for u in stage.status()["unmanaged"] if u["pid"] == pid and u.get("mechanism") == "kernel"), None
            )

        wait_for("the program without an agent is adopted", adopted)
        train = stage.train(["-p", "80"])
        train.wait_line("ready")
        managed(stage, train)
        wait_shut(stage, stranger)
        must(not is_shut(stage, train), "the urgent program was closed")
        stage.ask("set", str(pid), "-p", "10")
        must(adopted()["priority"] == 10, "set on a program without an agent: %s" % adopted())
        end_exact(train)
        wait_open(stage, stranger)
        wait_progress(stage, stranger)
        end_exact(stranger)


@case
def rights(build: str) -> None:
    """A user without the right: what he asks for is cut to his ceiling; he sees and changes nobody else's clients, and stops nothing."""
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if subprocess.run([*nobody, "test", "-x", os.path.join(build, "cli", "gpreempt-status")], check=False).returncode:
        raise Skipped("nobody cannot reach the build folder")
    with Stage(build, dilation=FAST) as stage:
        stage.daemon({"ceiling.default": "50"})
        os.chmod(stage.folder, 0o777)
        train = stage.train(["-p", "20"])
        train.wait_line("ready")
        managed(stage, train)
        pid = str(train.pid())

        def ask(*argv):
            return subprocess.run(
                stage.on_node([*nobody, stage.gpreempt(), *argv]),
                capture_output=True,
                text=True,
                check=False,
                env=stage.environment(),
                timeout=PATIENCE,
            )

        seen = ask("status", "--json")
        must(seen.returncode == 0, "status as nobody: %s" % seen)
        others = json.loads(seen.stdout)["clients"]
        must(
            others and all(c.get("hidden") and "name" not in c and "pid" not in c for c in others),
            "nobody sees: %s" % others,
        )
        for argv in (("set", pid, "-p", "90"), ("pause", "all")):
            refused = ask(*argv)
            must(refused.returncode == 1, "nobody may %s: %s" % (argv, refused))
        client = stage.client(train)
        must(client["priority"] == 20, "root's client was changed: %s" % client)
        must(not stage.status()["devices"][0]["stopped"], "nobody stopped the device")
        path = stage.file("his.json")
        his = stage.start(
            [*nobody, stage.gpreempt(), "run", "-p", "90", "--", stage.program_path("train"), "--json", path],
            "his",
            path,
        )
        his.wait_line("ready")
        client = managed(stage, his) and stage.client(his)
        must(client["uid"] == 65534 and client["priority"] == 50, "his client: %s" % client)
        refused = ask("set", str(his.pid()), "-p", "60")
        must(refused.returncode == 1 and stage.client(his)["priority"] == 50, "he raised himself: %s" % refused)
        lowered = ask("set", str(his.pid()), "-p", "10")
        must(
            lowered.returncode == 0 and stage.client(his)["priority"] == 10,
            "he may lower: %s, %s" % (lowered, stage.client(his)),
        )
        end_exact(train)
        end_exact(his)
