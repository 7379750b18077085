# SPDX-License-Identifier: MIT
"""Programs that start beside others, in every order: how long each takes to be ready, and which is not ready in time.

usage: starts.py --bin FOLDER --out FOLDER [--starts 20] [--seconds 330] [ORDER ...]

A program is ready when it has its context and its first kernel has run: be after one of 50 ms, hp after ten of 0.2. Each order is repeated until it has seen that many starts. Writes starts.json after
each order, and into starts-not-ready.json what `gpreempt status` said beside programs that were not ready. Ends with status 1 if one was not ready or a result was wrong.
"""
import argparse
import dataclasses
import json
import os
import sys
import tempfile
import time

import rm
import rows
from programs import END_S as PYTHON_END_S
from programs import Stage, Stuck, Trouble, xid_lines

READY_S = 3.0
PYTHON_S = 90.0  # programs in Python import and compile much
AS_FAST = 1.5  # a start under mechanism channel takes at most so many times the one under borrow; before 0024 it was 5
LATE_S = 8.0  # programs have at most so long to end after the deadline: `go` kills us 20 s after it
END_S = float(os.environ.get("NVBENCH_START_END_S", "10"))  # of a program, after SIGTERM; PYTHON_END_S in Python
ENDLESS = -rows.URGENT  # an urgent program whose kernel waits for its host, for ever


@dataclasses.dataclass(frozen=True)
class Order:
    name: str
    title: str
    there: tuple  # priorities of those that run before; of a program in Python: (program, priority)
    groups: tuple  # of those that start: each group at once, one group after the other
    settings: tuple = ()  # of gpreempt.conf
    managed: bool = True
    starts_max: int = 1000


U, B = rows.URGENT, rows.BATCH
ORDERS = (
    Order("native", "urgent, then batch, then batch; without gpreempt", (U,), ((B,), (B,)), managed=False),
    Order("one-by-one", "urgent, then batch, then batch", (U,), ((B,), (B,))),
    Order("two-at-once", "urgent, then two batch at once", (U,), ((B, B),)),
    Order("four-at-once", "2 urgent and 2 batch at once", (), ((U, U, B, B),)),
    Order("batch-first", "batch, batch, then urgent", (), ((B,), (B,), (U,))),
    Order(
        "no-short-slice", "urgent, batch, batch; short_slice = 0", (U,), ((B,), (B,)), (("nvidia.short_slice", "0"),)
    ),
    Order("long-turns", "urgent, batch, batch; turn = 2s", (U,), ((B,), (B,)), (("policy.turn", "2s"),)),
    Order("channel", "urgent, batch, batch; mechanism channel", (U,), ((B,), (B,)), (("nvidia.mechanism", "channel"),)),
    Order(
        "channel-at-once",
        "2 urgent and 2 batch at once; mechanism channel",
        (),
        ((U, U, B, B),),
        (("nvidia.mechanism", "channel"),),
    ),
    Order("endless", "an urgent kernel that never ends, then batch, then batch", (ENDLESS,), ((B,), (B,))),
    # Last, because each start may take PYTHON_S: what is compared must have been seen before.
    Order(
        "llm-train-jax",
        "a language model, then PyTorch training and JAX training at once",
        (("llm", rows.URGENT),),
        ((("torch", rows.BATCH), ("jax", rows.BATCH)),),
        starts_max=2,
    ),
    Order("urgent-jax", "urgent, then JAX training", (U,), ((("jax", rows.BATCH),),), starts_max=1),
)


# (a start under channel, the same under borrow)
ALIKE = (("channel", "one-by-one"), ("channel-at-once", "four-at-once"))


def seconds_of(what):
    return PYTHON_S if isinstance(what, tuple) else READY_S


def begin(stage, order, what):
    """Starts a program, which begins at once with what it does; its child with .begun."""
    program, priority = what if isinstance(what, tuple) else (None, what)
    given = abs(priority) if order.managed else None
    begun = time.monotonic()
    if program == "llm":
        child = stage.urgent(
            ["--seed", "1", "--phase", "starts", "--mode", "graph", "--requests", "1000000"]
            + ["--period-us", str(rows.LLM_PERIOD_US["graph"]), "--phase-seconds", "3600"],
            given,
            program="llm",
        )
        stage.go(child)
    elif program:
        child = stage.batch(given, listed=program)
    elif abs(priority) == U:
        child = stage.urgent(
            ["--us", str(rows.KERNEL_US), "--requests", "0", *(["--forever", "1"] if priority == ENDLESS else [])],
            given,
        )
        stage.go(child)
    else:
        child = stage.batch(given)
    child.begun, child.ready_s, child.end_s = begun, None, PYTHON_END_S if program else END_S
    return child


def wait_ready(children, seconds, deadline):
    """Notes when each is ready; those that are not in time. Trouble where the deadline passes first."""
    while True:
        waiting = [child for child in children if child.ready_s is None]
        for child in waiting:
            if "ready" in child.output().splitlines():
                child.ready_s = time.monotonic() - child.begun
            elif not child.is_running():
                raise Trouble("%s ended with status %d; %s" % (child.name, child.process.returncode, child.said()))
        waiting = [child for child in waiting if child.ready_s is None and time.monotonic() - child.begun < seconds]
        if not waiting:
            return [child for child in children if child.ready_s is None]
        if time.monotonic() >= deadline:
            raise Trouble("the time was up before %s was ready" % waiting[0].name)
        time.sleep(0.002)


def end(stage, order, children, found, deadline):
    """Adds (program, what was wrong with its end): it did not end in time (it is killed), ended by an error, with wrong results, or without a verdict.

    Trouble where one had less than its time, because the deadline is past."""
    cut = []
    for child in children:
        child.ask_to_end()
    asked = time.monotonic()
    for child in children:
        until, why = min(asked + child.end_s, deadline + LATE_S), None
        try:
            status = child.end(max(0.1, until - time.monotonic()))
            if status == 3:
                why = "results are WRONG"
            elif status != 0 or not child.output().rstrip().endswith("exact"):
                why = "ended with status %d without a verdict; %s" % (status, child.said())
        except Trouble:
            if until < asked + child.end_s:
                cut.append(child.name)
            else:
                rest = progress_of(child) + slice_of(stage, order, child)
                why = "did not end within %.0f s of SIGTERM%s" % (child.end_s, rest)
            child.kill()
        if why:
            found["ends"].append((child.name, why))
    if cut:
        raise Trouble("the time was up before %s ended" % cut[0])


def progress_of(child):
    """How much a batch program did while it should have ended: standing still and being slow are different things."""
    records = child.progress.records() if hasattr(child, "progress") else []
    if len(records) < 2:
        return ""
    last, units = records[-1]
    before = next((u for t, u in reversed(records) if t <= last - 5_000_000_000), records[0][1])
    return "; it noted %d units of work in its last 5 s" % (units - before)


def slice_of(stage, order, child):
    """What the driver and the daemon say of one that does not end."""
    slices = rm.slices(child.pid, child.tap) if getattr(child, "tap", None) else []
    said = "; its slices are %s us" % "/".join(map(str, slices)) if slices else ""
    clients = (stage.status() or {}).get("clients", ()) if order.managed else ()
    queues = [queue for client in clients if client.get("pid") == child.pid for queue in client.get("queues", ())]
    return said + "".join("; the daemon has it %s" % queue["gate"] for queue in queues if "gate" in queue)


def keep_status(stage, name, late, out):
    """Into one file: only a few come back from a machine that is lent."""
    path, kept = os.path.join(out, "starts-not-ready.json"), {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
    kept[name] = {"not_ready": [child.pid for child in late], "status": stage.status()}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(kept, file, indent=1)


def one_round(stage, order, found, out, deadline):
    """Starts every group of an order, and ends them all."""
    started = []
    for priorities in order.groups:
        children = [begin(stage, order, priority) for priority in priorities]
        late = wait_ready(children, max(map(seconds_of, priorities)), deadline)
        started += children
        found["ready_s"] += [child.ready_s for child in children if child.ready_s is not None]
        found["starts"] += len(children)
        found["not_ready"] += len(late)
        if late and order.managed:
            keep_status(stage, "%s-%d" % (order.name, found["not_ready"]), late, out)
        for child in late:
            child.kill()
        started = [child for child in started if child not in late]
    end(stage, order, started, found, deadline)
    stage.children = [child for child in stage.children if child not in started and child.is_running()]


def one_order(stage, order, arguments, deadline):
    wanted = min(arguments.starts, order.starts_max)
    found = {"title": order.title, "starts": 0, "not_ready": 0, "ready_s": [], "ends": []}
    try:
        if time.monotonic() >= deadline:
            raise Trouble("the time was up")
        if order.managed:
            stage.daemon(order.settings)
        there = [begin(stage, order, priority) for priority in order.there]
        limit = max([10, *(PYTHON_S for what in order.there if isinstance(what, tuple))])
        if wait_ready(there, limit, deadline):
            raise Trouble("an urgent program alone is not ready in %.0f s" % limit)
        time.sleep(0.3)
        while found["starts"] < wanted and time.monotonic() < deadline:
            one_round(stage, order, found, arguments.out, deadline)
        end(stage, order, there, found, deadline)
    except Trouble as trouble:
        if isinstance(trouble, Stuck):
            raise
        found["trouble"] = str(trouble)
    finally:
        stage.close()
    found["exact"] = not found["ends"]
    found["whole"] = found["starts"] >= wanted and "trouble" not in found
    return found


def line_of(name, found):
    times = sorted(found["ready_s"])
    shown = (
        "ready after %.2f s (median), %.2f s at most" % (times[len(times) // 2], times[-1])
        if times
        else "none was ready"
    )
    ends = {}
    for program, what in found["ends"]:  # the same of several programs is told once
        ends.setdefault((program.rsplit("-", 1)[0], what.split(";")[0]), []).append("%s %s" % (program, what))
    rest = "".join(
        "; %d %s programs: %s" % (len(said), kind, said[0]) if len(said) > 1 else "; " + said[0]
        for (kind, _), said in ends.items()
    )
    rest += "; " + found["trouble"] if "trouble" in found else "" if found["whole"] else "; the time was up"
    return "%-16s %2d of %2d not ready in %.0f s; %s%s (%s)" % (
        name,
        found["not_ready"],
        found["starts"],
        max(seconds_of(what) for order in ORDERS if order.name == name for group in order.groups for what in group),
        shown,
        rest,
        found["title"],
    )


def as_fast(results):
    """[(sentence, True or False)] of starts under channel, over the same under borrow."""
    medians = {
        name: sorted(found["ready_s"])[len(found["ready_s"]) // 2]
        for name, found in results.items()
        if found["ready_s"]
    }
    return [
        (
            "%s takes %.2f s to be ready (median), %s %.2f: aimed at at most %.1f times that: "
            % (slow, medians[slow], fast, medians[fast], AS_FAST),
            medians[slow] <= AS_FAST * medians[fast],
        )
        for slow, fast in ALIKE
        if slow in medians and fast in medians
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=330)
    parser.add_argument("order", nargs="*")
    arguments = parser.parse_args()
    unknown = set(arguments.order) - {order.name for order in ORDERS}
    if unknown:
        parser.error(
            "no such order: %s; there are %s" % (", ".join(sorted(unknown)), ", ".join(order.name for order in ORDERS))
        )
    os.makedirs(arguments.out, exist_ok=True)
    deadline, xids, results = time.monotonic() + arguments.seconds, xid_lines(), {}
    stopped = False
    with tempfile.TemporaryDirectory(prefix="nvbench-starts.") as folder:
        stage = Stage(folder, arguments.bin)
        try:
            stage.calibrate()
            stage.close()
            for order in ORDERS:
                if arguments.order and order.name not in arguments.order:
                    continue
                results[order.name] = one_order(stage, order, arguments, deadline)
                print(line_of(order.name, results[order.name]), flush=True)
                with open(os.path.join(arguments.out, "starts.json"), "w", encoding="utf-8") as file:
                    json.dump(results, file, indent=1)
        except Trouble as trouble:
            print("starts: %s" % trouble)
            stopped = True
        finally:
            try:
                stage.close()
            except Trouble as trouble:
                print("starts: %s" % trouble)
                stopped = True
    new = [one for one in xid_lines() or [] if one not in (xids or [])]
    print("\n".join(new) if new else "no Xid" if xids is not None else "the kernel's log cannot be read")
    for sentence, answer in as_fast(results):
        print(sentence + ("yes" if answer else "NO"))
    good = (
        not stopped
        and all(answer for _, answer in as_fast(results))
        and all(not found["not_ready"] and found["exact"] and found["whole"] for found in results.values())
    )
    return int(not good or bool(new))


if __name__ == "__main__":
    sys.exit(main())
