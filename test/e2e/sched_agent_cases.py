# SPDX-License-Identifier: MIT
"""More cases of test/e2e/sched: clients whose agent's own thread ends while the program goes on, or that stop."""
import os
import signal
import subprocess

from sched_cases import (
    AGELESS,
    ENDLESS,
    FAST,
    Skipped,
    Stage,
    case,
    end_exact,
    gates,
    managed,
    must,
    pair,
    wait_all_open,
    wait_progress,
    wait_shut,
)
from stage import PATIENCE, Program, wait_for


def end_thread(stage: Stage, program: Program, when: str) -> None:
    """Ends the agent's thread of a program, and nothing else of it."""
    done = subprocess.run(
        [os.path.join(stage.build, "test", "e2e", "thread-end"), str(program.pid()), "gpreempt-agent", when],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    if done.returncode == 77:
        raise Skipped(done.stdout.strip())
    must(done.returncode == 0, "thread-end %s: %s%s" % (when, done.stdout, done.stderr))


def connection(stage: Stage, program: Program) -> int | None:
    """Since when, on the daemon's clock, its agent is connected; None: it is not."""
    status = stage.status()
    client = stage.client(program, status)
    return client and client["queues"] and status["daemon"]["uptime_real_ns"] - client["connected_real_ns"]


def thread_ended(build: str, name: str) -> None:
    """The thread ends between two calls, and just before and just after one to the driver: an heir opens what was closed, comes to the
    daemon and takes orders. The fourth time there is no heir: the gates are open, the program goes on, the daemon has forgotten it.
    """
    with Stage(build, dilation=FAST, mechanism=name, hasty=True) as stage:
        stage.daemon()
        train = stage.train(["-p", "20"])
        train.wait_line("ready")
        serve = stage.serve(["-p", "80"], closed=0.02, seconds=ENDLESS)
        managed(stage, train, serve)
        # Where the daemon or nobody calls the driver, the thread does not.
        calls = name in ("self", "update")
        for when in ("before", "after", "now") if calls else ("now", "now", "now"):
            since = connection(stage, train)
            end_thread(stage, train, when)
            wait_for("an heir comes to the daemon; %s" % train.tail(), lambda: (connection(stage, train) or 0) > since)
            if name != "submit":
                wait_shut(stage, train)
            wait_progress(stage, train)
        if calls:
            wait_shut(stage, train)
        end_thread(stage, train, "now")
        wait_for("the daemon forgets it", lambda: not stage.client(train))
        wait_all_open(stage, train)
        wait_progress(stage, train)
        end_exact(serve)
        end_exact(train)


@case
def thread_ended_debugger(build: str) -> None:
    thread_ended(build, "debugger")


@case
def thread_ended_self(build: str) -> None:
    thread_ended(build, "self")


@case
def thread_ended_update(build: str) -> None:
    thread_ended(build, "update")


@case
def thread_ended_submit(build: str) -> None:
    thread_ended(build, "submit")


@case
def thread_ended_alone(build: str) -> None:
    """It ends while the daemon hangs: nobody orders anything, and its closed gates open all the same."""
    for name in ("self", "update"):
        with Stage(build, dilation=FAST, mechanism=name, hasty=True) as stage:
            daemon = stage.daemon()
            below, above = pair(stage)
            wait_shut(stage, below)
            daemon.signal(signal.SIGSTOP)
            try:
                end_thread(stage, below, "now")
                wait_all_open(stage, below)
                wait_progress(stage, below)
            finally:
                daemon.signal(signal.SIGCONT)
            managed(stage, below, above)
            wait_shut(stage, below)
            end_exact(above)
            end_exact(below)


@case
def urgent_stopped(build: str) -> None:
    """SIGSTOP of the urgent client: the device finishes what it has, the daemon reads that from its memory and says so, and the one below is
    opened for good, although nobody answers. After SIGCONT everything is as before."""
    for name in ("debugger", "self", "update"):
        with Stage(build, dilation=FAST, mechanism=name, hasty=True) as stage:
            stage.daemon()
            below, above = pair(stage)
            wait_shut(stage, below)
            above.signal(signal.SIGSTOP)
            try:
                # The status is not asked yet: it would have the daemon look. Packets without a halt: it is open for good.
                wait_for(
                    "the device finishes", lambda: not any(q["submitted"] > q["read"] for q in stage.queues(above))
                )

                def undisturbed():
                    halts = stage.node()["gpus"][0]["halts"]
                    wait_progress(stage, below, 100)
                    return stage.node()["gpus"][0]["halts"] == halts

                wait_for("below is not closed any more", undisturbed)

                def finished():
                    status = stage.status()
                    client = stage.client(above, status)
                    return (
                        not gates(client)
                        and client["counters"] == "daemon"
                        and gates(stage.client(below, status)) == {"open"}
                        and status
                    )

                status = wait_for("above has no work left and below is open: %s" % stage.status()["clients"], finished)
                client = stage.client(above, status)
                node = {q["id"]: q for q in stage.queues(above)}
                for queue in client["queues"]:
                    must(queue["completed"] == node[queue["queue_id"]]["read"], "completed: %s, %s" % (queue, node))
                wait_progress(stage, below, 20)
                must(gates(stage.client(below)) == {"open"}, "below was closed for one that is stopped")
            finally:
                above.signal(signal.SIGCONT)
            wait_shut(stage, below)
            wait_for("the agent looks again", lambda: stage.client(above)["counters"] == "agent")
            end_exact(above)
            end_exact(below)


@case
def stopped_escalates(build: str) -> None:
    """A client that could not be debugged when it came (it was traced) is one of its agent's; when it stops and does not answer, the daemon
    becomes its debugger and closes it all the same."""
    with Stage(build, dilation=50, mechanism="debugger,update", hasty=True) as stage:
        below = stage.train(["-p", "20"], "low")
        below.wait_line("ready")
        tracer = subprocess.Popen(
            [os.path.join(stage.build, "test", "e2e", "thread-end"), str(below.pid()), "-", "hold"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            said = tracer.stdout.readline()
            if said != "held\n":
                raise Skipped("thread-end: " + said)
            stage.daemon()
            managed(stage, below)
            must(stage.client(below)["mechanism"] == "update", "it is traced: %s" % stage.client(below))
        finally:
            tracer.stdin.close()
            tracer.wait()
        below.signal(signal.SIGSTOP)
        try:
            above = stage.train(["-p", "80"], "high")
            wait_for(
                "the daemon is its debugger: %s" % stage.client(below),
                lambda: stage.client(below)["mechanism"] == "debugger",
            )
            wait_for("it is closed", lambda: all(q["gate"] == "closed" for q in stage.client(below)["queues"]))
        finally:
            below.signal(signal.SIGCONT)
        end_exact(above)
        wait_progress(stage, below)
        wait_all_open(stage, below)
        end_exact(below)


@case
def policy_changed(build: str) -> None:
    """Another policy by reload, and back, with each mechanism: orders are carried out as before. The new core counts its plans from 1, agents
    take no order older than their last. Under policy none the program that was held out runs beside the urgent one."""
    for name in ("debugger", "self", "update"):
        with Stage(build, dilation=FAST, mechanism=name) as stage:
            daemon = stage.daemon()
            below, above = pair(stage)
            wait_shut(stage, below)
            for policy in ("none", "rr", "hpf"):
                with open(stage.file("gpreemptd.conf"), "w", encoding="utf-8") as file:
                    file.write(stage.configuration({"policy.policy": policy}))
                daemon.signal(signal.SIGHUP)
                wait_for("policy " + policy, lambda policy=policy: stage.status()["daemon"]["policy"] == policy)
                if policy == "none":
                    wait_all_open(stage, below)
                    wait_progress(stage, below)
            above.end()
            wait_progress(stage, below)
            again = stage.train(["-p", "80"], "again")
            again.wait_line("ready")
            wait_shut(stage, below)
            stats = stage.status()["devices"][0]["stats"]
            must(stats["order_failures"] == 0 and stats["quarantines"] == 0, "orders failed: %s" % stats)
            end_exact(above, again)
            end_exact(below)


@case
def fetch(build: str) -> None:
    """A device whose read pointer moves when a packet starts, and [kfd] rptr = fetch: the last packet of a queue runs when the queue looks
    drained already. The urgent one is never closed, the other is held out while it works, and all is exact."""
    with Stage(build, dilation=FAST, params=["--param", "vgpu_rptr_at_fetch=1"]) as stage:
        stage.daemon({"kfd.rptr": "fetch", **AGELESS})
        must(stage.status()["devices"][0]["rptr"] == "fetch", "rptr: %s" % stage.status()["devices"][0])
        below, above = pair(stage)
        for _ in range(3):
            wait_shut(stage, below)
            wait_progress(stage, above)
        must(
            not any(q["closes"] for q in stage.client(above)["queues"]),
            "the urgent one was closed: %s" % stage.client(above),
        )
        # What the agent sees is ahead of what is complete, never behind.
        wait_for(
            "a packet that runs counts as read",
            lambda: any(
                q["completed"] > n["read"]
                for q in stage.client(above)["queues"]
                for n in stage.queues(above)
                if n["id"] == q["queue_id"]
            ),
            every=0.01,
        )
        end_exact(above)
        wait_progress(stage, below)
        end_exact(below)


@case
def few_descriptors(build: str) -> None:
    """A HIP program with a limit of 16 descriptors: the agent needs too many of them and leaves it alone. With 64 it is scheduled."""
    with Stage(build, dilation=FAST) as stage:
        stage.daemon()
        for limit in (16, 64):
            path, log = stage.file("few-%d.json" % limit), stage.file("agent-%d.log" % limit)
            argv = stage.managed([stage.program_path("train"), "--json", path], ["-p", "20"])
            train = stage.start(
                ["prlimit", "--nofile=%d" % limit, *argv], "few", path, extra={"GPREEMPT_AGENT_LOG": log}
            )
            train.wait_line("ready")
            if limit == 64:
                managed(stage, train)
            else:
                with open(log, encoding="utf-8") as file:
                    must("too few descriptors" in file.read(), "the agent's log does not say that it is off")
                must(not stage.client(train), "it is a client in spite of its limit")
            end_exact(train)
