# SPDX-License-Identifier: MIT
"""What the cases of test/e2e/report share: running the program, noting what is wrong, and the figures of a run by an
independent computation (a sweep over the ends of all intervals that shares nothing with the program).

The program and the root of the sources come from the command line of whoever imports this.
"""
import collections
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DATA = os.path.join(ROOT, "test", "data", "traces")
EMPTY = os.path.join(DATA, "rocpd", "empty.db")
FAILED = []


def check(condition: Any, what: str) -> None:
    if not condition:
        FAILED.append(what)
        print(f"FAIL: {what}")


def equal(got: Any, want: Any, what: str) -> None:
    check(got == want, f"{what}: {got!r} instead of {want!r}")


def run(*arguments: Any, expect: int = 0, **options: Any) -> subprocess.CompletedProcess:
    """Options are those of subprocess.run: input, stdin, cwd."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, timeout=300, **options)
    check(
        done.returncode == expect,
        f"{arguments}: status {done.returncode}: {done.stderr.decode(errors='replace')[:300]}",
    )
    return done


def report(*arguments: Any, **options: Any) -> dict | None:
    done = run(*arguments, "--json", **options)
    return json.loads(done.stdout) if done.returncode == 0 else None


def union(intervals: Iterable[tuple[int, int]]) -> int:
    """By marking starts and ends, not by merging."""
    points = sorted([(s, 1) for s, e in intervals] + [(e, -1) for s, e in intervals], key=lambda p: (p[0], -p[1]))
    depth = total = last = 0
    for time, change in points:
        if depth:
            total += time - last
        depth, last = depth + change, time
    return total


LAYERS = {"RCCL": "libraries", "HIP": "HIP", "HSA": "HSA"}


def self_times(events: list[Any]) -> tuple[int, collections.Counter]:
    """Each moment to the lowest layer that is active on any thread."""
    points = []
    for e in events:
        if e.layer in LAYERS:
            points += [(e.start, 1, LAYERS[e.layer]), (e.end, -1, LAYERS[e.layer])]
    points.sort(key=lambda p: p[0])
    open_calls, times, last = collections.Counter(), collections.Counter(), None
    for time, change, layer in points:
        for name in ("HSA", "HIP", "libraries"):
            if last is not None and open_calls[name]:
                times[name] += time - last
                break
        open_calls[layer] += change
        last = time
    wall = max(e.end for e in events) - min(e.start for e in events)
    times["application"] = wall - sum(times.values())
    return wall, times


def check_figures(got: dict | None, events: list[Any], what: str, has_pid: bool = True, has_hsa: bool = True) -> None:
    if got is None:
        return
    wall, times = self_times(events)
    equal(got["wall_ns"], wall, f"{what}: wall")
    equal(got["events"], len(events), f"{what}: events")
    for layer in got["layers"]:
        if layer["self_ns"] is not None and has_hsa:
            equal(layer["self_ns"], times[layer["name"]], f"{what}: self time of {layer['name']}")
    engines = {layer: [(e.start, e.end) for e in events if e.layer == layer] for layer in ("kernel", "copy")}
    equal(got["gpu"]["compute_ns"], union(engines["kernel"]) if engines["kernel"] else None, f"{what}: kernels")
    equal(got["gpu"]["copy_ns"], union(engines["copy"]) if engines["copy"] else None, f"{what}: copies")
    equal(got["gpu"]["busy_ns"], union(engines["kernel"] + engines["copy"]), f"{what}: GPU busy")
    equal(got["critical_path"]["total_ns"], wall, f"{what}: the path adds up")
    totals = collections.Counter()
    for e in events:
        if e.layer == "kernel":
            totals[e.name] += e.end - e.start
    found = collections.Counter()
    for kernel in got["kernels"]:
        found[kernel["name"]] += kernel["total_ns"]
    equal(found, totals, f"{what}: kernels by name")
    if has_pid:
        equal({p["process"] for p in got["processes"]}, {e.pid for e in events}, f"{what}: processes")
