# SPDX-License-Identifier: MIT
"""More cases of test/e2e/sched: programs that destroy their queues while the gates are closed."""
import os
import signal

from sched_cases import AGELESS, FAST, Skipped, Stage, case, end_exact, managed, must, stopped, wait_shut
from stage import wait_for


def destroy_closed(build, name):
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
def destroy_closed_kernel(build):
    destroy_closed(build, "kernel")


@case
def destroy_closed_debugger(build):
    destroy_closed(build, "debugger")


@case
def destroy_closed_self(build):
    destroy_closed(build, "self")


@case
def destroy_closed_update(build):
    destroy_closed(build, "update")
