# SPDX-License-Identifier: MIT
"""More cases of test/e2e/sched: servers that rest. make idle-test runs them at length."""
from sched_cases import AGELESS, ENDLESS, IDLE_S, Stage, case, end_exact, managed
from stage import hurry, wait_for

REST_S = 3  # longer than a queue must be idle before it gives its slot back


def resting(stage, run_options):
    servers = [stage.serve(run_options, closed=REST_S, seconds=ENDLESS) for _ in range(20)]
    for server in servers:
        server.wait_line("ready")
    return servers


def said(who, servers):
    """What each request after a rest took, as the servers have measured it."""
    times = sorted(time for server in servers for time in server.result()["latency_ns"][1:])
    print("  %s: %d requests after a rest of %d s; median %.2f ms, 99 of 100 below %.2f ms, the slowest %.2f ms" %
          (who, len(times), REST_S, times[len(times) // 2] / 1e6, times[len(times) * 99 // 100] / 1e6, times[-1] / 1e6), flush=True)


@case
def idle_reopened(build):
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
        end_exact(*servers)
        said("with the daemon", servers)
    if IDLE_S < 30:
        return
    with Stage(build, dilation=1) as stage:
        servers = resting(stage, None)
        wait_for("as many requests without a daemon", lambda: stage.node()["total"]["packets"] and all(
            sum(queue["packets"] for queue in stage.queues(server)) > 100 for server in servers))
        end_exact(*servers)
        said("without a daemon", servers)
