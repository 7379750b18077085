# SPDX-License-Identifier: MIT
"""More cases of test/e2e/sched: servers that rest. make idle-test runs them at length."""
import json
import time
from collections.abc import Sequence

from sched_cases import AGELESS, ENDLESS, IDLE_S, Stage, case, end_exact, managed
from stage import Program, hurry, wait_for

REST_S = 3  # longer than a queue must be idle before it gives its slot back


def resting(stage: Stage, run_options: Sequence[str]) -> list[Program]:
    servers = [stage.serve(run_options, closed=REST_S, seconds=ENDLESS) for _ in range(20)]
    for server in servers:
        server.wait_line("ready")
    return servers


def said(who: str, servers: list[Program]) -> None:
    """What each request after a rest took, as the servers have measured it."""
    times = sorted(time for server in servers for time in server.result()["latency_ns"][1:])
    print(
        "  %s: %d requests after a rest of %d s; median %.2f ms, 99 of 100 below %.2f ms, the slowest %.2f ms"
        % (who, len(times), REST_S, times[len(times) // 2] / 1e6, times[len(times) * 99 // 100] / 1e6, times[-1] / 1e6),
        flush=True,
    )


def opened_after(stage: Stage) -> None:
    """From the moment in which the daemon knew of work on a closed queue until it ordered its gate open, and from there until the driver had opened it, as the daemon's
    events have it."""
    closed, known, ordered, decisions, calls = set(), {}, {}, [], []
    for event in map(json.loads, stage.ask("events", "--json").stdout.splitlines()):
        queue, name = (event["pid"], event["gpu_id"], event["queue_id"]), event["event"]
        if name == "closed":
            closed.add(queue)
        elif name == "busy" and queue in closed:
            known[queue] = event["t_ns"]
        elif name == "open" and queue in known:
            ordered[queue] = event["t_ns"]
            decisions.append(event["t_ns"] - known.pop(queue))
        elif name in ("opened", "queue-remove"):
            closed.discard(queue)
            known.pop(queue, None)
            if queue in ordered:
                calls.append(event["t_ns"] - ordered.pop(queue))
    for what, times in (
        ("the daemon ordered a closed queue with work open", sorted(decisions)),
        ("and the driver had opened it", sorted(calls)),
    ):
        if times:
            print(
                "  %s after: median %.3f ms, the slowest %.3f ms, of %d"
                % (what, times[len(times) // 2] / 1e6, times[-1] / 1e6, len(times)),
                flush=True,
            )


@case
def idle_reopened(build: str) -> None:
    """Twenty servers that rest between two requests: more queues than slots, so that queues are parked meanwhile. The node shows queues that were closed without work and
    have run packets since: the request after the rest has opened them. All are exact. With SCHED_IDLE_S=30 each server is waited for, and the same is shown without a
    daemon."""
    if IDLE_S >= 30 and not hurry():
        print("  other work on this machine is in the figures")
    with Stage(build, dilation=1) as stage:
        stage.daemon(AGELESS)
        servers = resting(stage, ["-p", "50"])
        managed(stage, *servers)
        parked, reopened = {}, set()

        def came_back():
            for queue in stage.node()["queues"]:
                key = queue["pid"], queue["id"]
                is_shut = queue["suspended"] or queue["percent"] == 0
                if is_shut and queue["submitted"] <= queue["read"]:
                    parked[key] = queue["packets"]
                elif not is_shut and queue["packets"] > parked.get(key, queue["packets"]):
                    reopened.add(queue["pid"])
            return len(reopened) >= (20 if IDLE_S >= 30 else 5)

        wait_for("parked servers are opened by their next request: %d of them" % len(reopened), came_back)
        opened_after(stage)
        end_exact(*servers)
        said("with the daemon", servers)
    if IDLE_S < 30:
        return
    with Stage(build, dilation=1) as stage:
        servers = resting(stage, None)
        time.sleep(8 * REST_S)  # for figures: nothing is decided by it
        end_exact(*servers)
        said("without a daemon", servers)
