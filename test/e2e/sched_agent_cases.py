# SPDX-License-Identifier: MIT
"""More cases of test/e2e/sched: what becomes of a client whose agent's own thread ends while the program goes on."""
import os
import signal
import subprocess

from sched_cases import FAST, Skipped, case, end_exact, managed, must, pair, wait_all_open, wait_progress, wait_shut
from stage import PATIENCE, Stage, wait_for


def end_thread(stage, program, when):
    """Ends the agent's thread of a program, and nothing else of it."""
    done = subprocess.run([os.path.join(stage.build, "test", "e2e", "thread-end"), str(program.pid()), "gpreempt-agent", when],
                          capture_output=True, text=True, check=False, timeout=PATIENCE)
    if done.returncode == 77:
        raise Skipped(done.stdout.strip())
    must(done.returncode == 0, "thread-end %s: %s%s" % (when, done.stdout, done.stderr))


def connection(stage, program):
    """Since when, on the daemon's clock, its agent is connected; None: it is not."""
    status = stage.status()
    client = stage.client(program, status)
    return client and client["queues"] and status["daemon"]["uptime_real_ns"] - client["connected_real_ns"]


def thread_ended(build, name):
    """The thread ends between two calls, and just before and just after one to the driver: an heir opens what was closed, comes to the
    daemon and takes orders. The fourth time there is no heir: the gates are open, the program goes on, the daemon has forgotten it."""
    with Stage(build, dilation=FAST, mechanism=name) as stage:
        stage.daemon()
        train = stage.train(["-p", "20"])
        train.wait_line("ready")
        serve = stage.serve(["-p", "80"], closed=0.02, seconds=100000)
        managed(stage, train, serve)
        # Where the daemon or nobody calls the driver, the thread does not.
        calls = name in ("self", "update")
        for when in ("before", "after", "now") if calls else ("now", "now", "now"):
            since = connection(stage, train)
            end_thread(stage, train, when)
            wait_for("an heir comes to the daemon; %s" % train.tail(), lambda: (connection(stage, train) or 0) > since + 1_000_000)
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
def thread_ended_debugger(build):
    thread_ended(build, "debugger")


@case
def thread_ended_self(build):
    thread_ended(build, "self")


@case
def thread_ended_update(build):
    thread_ended(build, "update")


@case
def thread_ended_submit(build):
    thread_ended(build, "submit")


@case
def thread_ended_alone(build):
    """It ends while the daemon hangs: nobody orders anything, and its closed gates open all the same."""
    for name in ("self", "update"):
        with Stage(build, dilation=FAST, mechanism=name) as stage:
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
