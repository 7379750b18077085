# SPDX-License-Identifier: MIT
"""More cases of test/e2e/sched: programs that destroy their queues while the daemon closes and opens them."""
import os
import signal

from sched_cases import (
    AGELESS,
    FAST,
    Skipped,
    Stage,
    case,
    end_exact,
    exact,
    managed,
    must,
    stopped,
    wait_progress,
    wait_shut,
)
from stage import wait_for


def destroy_closed(build: str, name: str) -> None:
    """A program destroys a queue whose gate is closed for another's work, and makes a new one: it does not wait for that work, which goes
    on for as long as this case lasts. The new queue's gate is closed as well; in the end the program destroys a closed queue and ends.
    """
    path = os.path.join(build, "test", "e2e", "queue-renew")
    if not os.path.exists(path):
        raise Skipped("queue-renew was not built: ROCr's headers are missing")
    with Stage(build, dilation=FAST, mechanism=name) as stage:
        stage.daemon(AGELESS)
        batch = stage.start(stage.managed([path], ["-p", "10"]))
        batch.wait_line("ready")
        low = stage.train(["-p", "20"], "low")
        low.wait_line("ready")
        urgent = stage.train(["-p", "80"], "high")
        urgent.wait_line("ready")
        managed(stage, batch, low, urgent)

        def is_closed():
            queues = stage.client(batch)["queues"]
            return stopped(stage, batch) and queues and all(queue["gate"] == "closed" for queue in queues)

        for number in range(1, 4):
            wait_for("the gate of the idle queue is closed: %s" % stage.queues(batch), is_closed, every=0.01)
            batch.signal(signal.SIGUSR1)
            batch.wait_line("destroyed %d" % number, seconds=30)
            batch.wait_line("created %d" % number, seconds=30)
        wait_for("the gate of the last queue is closed", is_closed, every=0.01)
        must(batch.end() == 0, "it ended with status %d; %s" % (batch.process.returncode, batch.tail()))
        wait_shut(stage, low)
        end_exact(urgent)
        end_exact(low)


@case
def destroy_closed_kernel(build: str) -> None:
    destroy_closed(build, "kernel")


@case
def destroy_closed_debugger(build: str) -> None:
    destroy_closed(build, "debugger")


@case
def destroy_closed_self(build: str) -> None:
    destroy_closed(build, "self")


@case
def destroy_closed_update(build: str) -> None:
    destroy_closed(build, "update")


def come_and_go(build: str, name: str) -> None:
    """Programs that make and destroy queues all the time, one of them since before the first daemon. The daemon is killed and started again, the
    newest program is killed, the oldest is stopped for a while: the others end when they should, and are exact."""
    path = os.path.abspath(os.path.join(build, "test", "e2e", "streams"))
    with Stage(build, dilation=1, mechanism=name) as stage:

        def start(priority, what, **options):
            program = stage.serve(["-p", priority], what, program=path, **options)
            program.wait_line("ready")
            return program

        batch = start("20", "batch")
        daemon = stage.daemon()
        urgent = start("80", "urgent")
        newest = start("20", "newest")
        managed(stage, batch, urgent, newest)
        os.kill(daemon.pid(), signal.SIGKILL)
        daemon.process.wait()
        stage.daemon()
        managed(stage, batch, urgent, newest)
        newest.kill()
        stage.programs.remove(newest)
        batch.signal(signal.SIGSTOP)
        exact(start("20", "short", turns=5))
        batch.signal(signal.SIGCONT)
        end_exact(urgent)
        last = start("20", "last", turns=5)
        end_exact(batch)
        exact(last)
        wait_for("the node holds no queue", lambda: stage.node()["now"]["queues"] == 0)


@case
def come_and_go_kernel(build: str) -> None:
    come_and_go(build, "kernel")


@case
def come_and_go_debugger(build: str) -> None:
    come_and_go(build, "debugger")


@case
def come_and_go_self(build: str) -> None:
    come_and_go(build, "self")


def first_thread_ends(build: str, name: str) -> None:
    """The first thread of a program ends while its gate is closed, the others go on: the gate opens again, closes again, and the results are
    exact. Another program's first thread has ended before its first queue, which is closed as well."""
    path = os.path.abspath(os.path.join(build, "test", "e2e", "streams"))
    with Stage(build, dilation=1, mechanism=name) as stage:
        stage.daemon(AGELESS)

        def batch(leave):
            program = stage.serve(["-p", "20"], "batch", program=path, leave=leave)
            program.wait_line("ready")
            return program

        def wait_stopped(program):
            """Any of its queues: that a queue for copies has work is not seen on the node."""
            wait_for("the gate of %s closes" % program.name, lambda: stopped(stage, program), every=0.01)

        def has_left(program):
            with open("/proc/%d/status" % program.pid(), encoding="ascii") as file:
                return "State:\tZ" in file.read()

        leaving = batch("signal")
        urgent = stage.train(["-p", "80"], "high")
        urgent.wait_line("ready")
        managed(stage, leaving, urgent)
        wait_stopped(leaving)
        leaving.signal(signal.SIGUSR1)
        wait_for("the first thread ends", lambda: has_left(leaving))
        end_exact(urgent)
        wait_progress(stage, leaving, 20)
        left = batch(leave="now")
        wait_for("the first thread of the second program ends", lambda: has_left(left))
        again = stage.train(["-p", "80"], "again")
        again.wait_line("ready")
        managed(stage, leaving, left, again)
        wait_stopped(leaving)
        if (
            name != "debugger"
        ):  # nobody can trace a process whose first thread has ended; without a name another mechanism does it
            wait_stopped(left)
        end_exact(again)
        end_exact(leaving, left)


@case
def first_thread_ends_auto(build: str) -> None:
    first_thread_ends(build, None)


@case
def first_thread_ends_debugger(build: str) -> None:
    first_thread_ends(build, "debugger")


@case
def first_thread_ends_self(build: str) -> None:
    first_thread_ends(build, "self")


@case
def first_thread_ends_update(build: str) -> None:
    first_thread_ends(build, "update")


@case
def first_thread_ends_kernel(build: str) -> None:
    first_thread_ends(build, "kernel")
