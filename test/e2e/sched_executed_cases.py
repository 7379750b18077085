# SPDX-License-Identifier: MIT
"""The demonstration's kernels executed instead of described: preempted between two of their instructions, again and again, by each mechanism.

GPREEMPT_PREEMPTIONS: how many, of each program; 12 by itself, and 300 in make isa-demo.
"""
import os

from sched_cases import ENDLESS, Stage, case, end_exact, managed, must, wait_progress
from stage import Program, wait_for

COUNT = int(os.environ.get("GPREEMPT_PREEMPTIONS", "12"))
EXECUTED = ("--param", "vgpu_execute=2")


def inside(stage: Stage, program: Program) -> int:
    """Preemptions that found a wave of it between its first and last instruction."""
    return sum(queue["stopped_inside"] for queue in stage.queues(program))


def preempt(stage: Stage, victim: Program) -> int:
    """An urgent service beside it until it was stopped inside kernels often enough; how often it was."""
    urgent = stage.serve(["-p", "80"], "urgent", closed=0.12, seconds=ENDLESS)
    managed(stage, victim, urgent)
    wait_for(
        "%d preemptions inside kernels of %s" % (COUNT, victim.name),
        lambda: inside(stage, victim) >= COUNT,
        seconds=120 + COUNT * 6,
    )
    found = inside(stage, victim)
    end_exact(urgent)
    wait_progress(stage, victim)
    end_exact(victim)
    return found


def executed(build: str, mechanism: str) -> None:
    """So many preemptions inside the kernels of a trainer and of a service, every wave that was saved restored, every result exact."""
    with Stage(build, dilation=10, mechanism=mechanism, params=EXECUTED) as stage:
        stage.daemon()
        train = stage.train(["-p", "20"])
        train.wait_line("ready")
        found = [preempt(stage, train)]
        found.append(preempt(stage, stage.serve(["-p", "20"], kernels=16, closed=0, seconds=ENDLESS)))
        total = stage.node()["total"]
        must(total["workgroups_body"] == 0, "a kernel was described: %s" % total)
        must(total["waves_saved"] == total["waves_restored"] > 0, "waves that were saved and not restored: %s" % total)
        print(
            "%s: %d preemptions inside kernels of train, %d of serve; %d waves saved and restored; %d workgroups, %d million wave "
            "instructions executed; all exact"
            % (
                mechanism,
                *found,
                total["waves_saved"],
                total["workgroups_executed"],
                total["wave_instructions"] // 1000000,
            )
        )


@case
def executed_debugger(build: str) -> None:
    executed(build, "debugger")


@case
def executed_self(build: str) -> None:
    executed(build, "self")


@case
def executed_update(build: str) -> None:
    executed(build, "update")


@case
def executed_submit(build: str) -> None:
    """Submission holds packets back and preempts nobody: exact beside each other, without a wave saved on its account."""
    with Stage(build, dilation=10, mechanism="submit", params=EXECUTED) as stage:
        stage.daemon()
        train = stage.train(["-p", "20"])
        train.wait_line("ready")
        serve = stage.serve(["-p", "80"], closed=0.12, seconds=ENDLESS)
        managed(stage, train, serve)
        wait_for("train is held back", lambda: any(queue["closes"] for queue in stage.client(train)["queues"]))
        wait_progress(stage, serve, 4 * COUNT)
        end_exact(serve)
        wait_progress(stage, train)
        end_exact(train)
        total = stage.node()["total"]
        must(total["waves_saved"] == total["waves_restored"], "waves that were saved and not restored: %s" % total)
        print("submit: %d waves saved and restored; all exact" % total["waves_saved"])
