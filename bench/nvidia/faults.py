# SPDX-License-Identifier: MIT
"""kill -9 of gpreemptd, of urgent programs, of a batch program: how soon the others run again, and whether everything is as it was."""
from __future__ import annotations

import os
import signal
import time
from typing import Any

import measure
import rm
import rows
from programs import Child, Stage, Trouble, wait_for
from rows import Setup

SAMPLE_US = 500
SETTLE_S, AFTER_S = 1.0, 1.5
HELD_NS = 60_000_000  # no work for so long, while the program lives: it is held out
LONG_US = 150_000  # kernels of a middle program that always has work


def again_after(records: list[tuple[int, int]], moment: int) -> int | None:
    """Nanoseconds from a moment to the first work after it; None: there was none."""
    before = max((units for t, units in records if t <= moment), default=None)
    if before is None:
        return None
    return next((t - moment for t, units in records if t > moment and units > before), None)


def lease_ms(stage: Stage) -> float:
    daemon = (stage.status() or {}).get("daemon") or {}
    return daemon.get("lease_ms") or 200


def expected_slices(results: dict[str, Any]) -> set[int] | None:
    """What the driver gives a context by itself, seen on batch programs that ran alone."""
    for rates in results["alone_rates"].values():
        for entry in rates.values():
            if entry.get("slices_us"):
                return set(entry["slices_us"])
    return None


def slices_back(children: list[Child], expected: set[int] | None) -> bool | None:
    """Whether each of these programs has the slices it would have without us; None: not known."""
    found = [rm.slices(child.pid, child.tap) for child in children if child.is_running()]
    if expected is None or not found or not all(found):
        return None
    return all(set(one) <= expected for one in found)


def kill(children: list[Child]) -> int:
    moment = measure.monotonic_ns()
    for child in children:
        os.kill(child.pid, signal.SIGKILL)
    return moment


def again_ms(batch: list[Child], moment: int) -> float | None:
    """The last of these programs to work again; None: one does not."""
    times = [again_after(child.progress.records(), moment) for child in batch]
    return None if None in times or not times else max(times) / 1e6


def is_held_out(child: Child) -> bool:
    records = child.progress.records()
    if not records or not child.is_running():
        return False
    last, units = records[-1]
    since = next((t for t, u in records if u == units), last)
    return last - since >= HELD_NS and measure.monotonic_ns() - last < HELD_NS


def urgent_endless(stage: Stage, us: int, period_us: int, priority: int, name: str) -> Child:
    child = stage.urgent(["--us", str(us), "--period-us", str(period_us), "--requests", "0"], priority, name)
    child.wait_line("ready")
    stage.go(child)
    return child


def finish(stage: Stage, batch: list[Child], others: list[Child], found: dict[str, Any]) -> dict[str, Any]:
    """Ends what is left; whether its results were exact."""
    for child in others:
        if child.end() not in (0, 3):
            raise Trouble("%s ended with status %d; %s" % (child.name, child.process.returncode, child.said()))
    exact = measure.end_batch(batch) and all(child.output().rstrip().endswith("exact") for child in others)
    return found | {"exact": exact}


def fault_daemon(stage: Stage, setup: Setup, expected: set[int] | None) -> dict[str, Any]:
    daemon = stage.daemon()
    lease = lease_ms(stage)
    batch = measure.start_batch(stage, setup, sample_us=SAMPLE_US)
    urgent = urgent_endless(stage, rows.KERNEL_US, rows.PERIOD_US, rows.URGENT, "hp")
    time.sleep(SETTLE_S)
    short = [rm.slices(child.pid, child.tap) for child in batch]
    moment = kill([daemon])
    time.sleep(AFTER_S)
    found = {
        "lease_ms": lease,
        "again_ms": again_ms(batch, moment),
        "slices_back": slices_back([*batch, urgent], expected),
        "note": "slices before: %s" % ", ".join("/".join(map(str, one)) or "?" for one in short),
    }
    return finish(stage, batch, [urgent], found)


def fault_urgent(stage: Stage, setup: Setup, expected: set[int] | None) -> dict[str, Any]:
    stage.daemon()
    lease = lease_ms(stage)
    batch = measure.start_batch(stage, setup, sample_us=SAMPLE_US)
    urgent = urgent_endless(stage, rows.KERNEL_US, 1_000_000, rows.URGENT, "hp")
    mid = urgent_endless(stage, LONG_US, LONG_US, rows.MID, "mid")
    try:
        wait_for("the batch program is held out", lambda: is_held_out(batch[0]), 10, 0.005)
        held = True
    except Trouble:
        held = False
    moment = kill([mid, urgent])
    time.sleep(AFTER_S)
    found = {
        "lease_ms": lease,
        "held_out": held,
        "again_ms": again_ms(batch, moment),
        "slices_back": slices_back(batch, expected),
        "note": "" if held else "the batch program was not held out",
    }
    return finish(stage, batch, [], found)


def fault_batch(stage: Stage, setup: Setup, expected: set[int] | None) -> dict[str, Any]:
    daemon = stage.daemon()
    lease = lease_ms(stage)
    batch = measure.start_batch(stage, setup, sample_us=SAMPLE_US)
    urgent = urgent_endless(stage, rows.KERNEL_US, rows.PERIOD_US, rows.URGENT, "hp")
    time.sleep(SETTLE_S)

    def last_work(child):
        records = child.progress.records()
        return next((t for t, units in records if units == records[-1][1]), 0) if records else 0

    victim = max(batch, key=last_work)
    moment = kill([victim])
    time.sleep(AFTER_S)
    rest = [child for child in batch if child is not victim]
    found = {"lease_ms": lease, "again_ms": again_ms(rest, moment)}
    daemon.end(10)
    time.sleep(0.5)
    found |= {"slices_back": slices_back([*rest, urgent], expected), "note": "slices after gpreemptd had ended"}
    return finish(stage, rest, [urgent], found)


def run(stage: Stage, setup: Setup, results: dict[str, Any]) -> dict[str, Any]:
    return {"daemon": fault_daemon, "urgent": fault_urgent, "batch": fault_batch}[setup.fault](
        stage, setup, expected_slices(results)
    )
