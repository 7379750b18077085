# SPDX-License-Identifier: MIT
"""Batch programs of which none can go on without the other, beside an urgent program that is connected and idle, and then at work: rounds a second, natively and with gpreempt.

ipc: two programs that were started apart and share memory and events of CUDA IPC. wait: two processes of one program whose kernels wait for each other. mp: torch.multiprocessing (torchpair.py).
"""
from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import measure
import rows
from programs import Child, Progress, Stage, Trouble, rate
from rows import Setup

TITLES = {
    "ipc": "two programs with CUDA IPC events",
    "wait": "two processes whose kernels wait for each other",
    "mp": "torch.multiprocessing, tensors to and fro",
}
AIMS = {"idle": 90.0, "busy": 50.0}  # percent of native, at least


def start(stage: Stage, kind: str, priority: int | None) -> list[Child]:
    """The programs, ready; the first notes the rounds."""
    path = os.path.join(stage.folder, "pair-%d.progress" % (stage.count + 1))
    if kind == "ipc":
        common = [stage.program("pair"), "--mode", "ipc", "--shared", path + ".shared", "--role"]
        commands = [[*common, "0", "--progress", path], [*common, "1"]]
    else:
        commands = [
            [*([stage.program("pair"), "--mode", "wait"] if kind == "wait" else stage.python["mp"]), "--progress", path]
        ]
    children = [stage.start("pair", stage.managed(priority, command)) for command in commands]
    children[0].progress = Progress(path)
    for child in children:
        child.wait_line("ready", 90)
    return children


def window(children: list[Child], seconds: float) -> float:
    """Rounds a second from now on; the programs must still be there at the end."""
    begin = measure.monotonic_ns()
    time.sleep(seconds)
    end = measure.monotonic_ns()
    return over(children, begin, end)


def over(children: list[Child], begin: float, end: float) -> float:
    """Rounds a second between two moments. A round that is under way for longer than that is counted in part; none at all is 0."""
    for child in children:
        if not child.is_running():
            raise Trouble("%s ended with status %d; %s" % (child.name, child.process.returncode, child.said()))
    records = children[0].progress.records()
    if len(records) < 2:
        return 0.0
    # The last round noted may be long ago: what stands still has made no more than that.
    records = [(records[0][0] - 1, records[0][1]), *records] if records[0][0] > begin else records
    if records[-1][0] < end:
        records.append((end, records[-1][1]))
    found = rate(records, max(begin, records[0][0]), end)
    return 0.0 if found is None else found


def run(stage: Stage, setup: Setup, seed: int) -> dict[str, Any]:
    """{"idle", "busy": rounds a second; the urgent program's latencies; whether everything was exact}."""
    managed = setup.manager == "gpreempt"
    if managed:
        stage.daemon(setup.settings)
        measure.require_means(stage.status())
    children = start(stage, setup.pair, rows.BATCH if managed else None)
    requests = int(rows.PAIR_BUSY_S * 1e6 / rows.PERIOD_US)
    urgent = stage.urgent(
        [
            "--seed",
            str(seed),
            "--us",
            str(rows.KERNEL_US),
            "--phase",
            "busy",
            "--requests",
            str(requests),
            "--period-us",
            str(rows.PERIOD_US),
            "--phase-seconds",
            "%.1f" % (rows.PAIR_BUSY_S * measure.OVER),
        ],
        rows.URGENT if managed else None,
    )
    urgent.wait_line("ready")
    time.sleep(rows.PAIR_SETTLE_S)
    idle = window(children, rows.PAIR_IDLE_S)
    status = stage.status() if managed else None
    stage.go(urgent)
    document, _ = measure.finish_urgent(urgent, rows.PAIR_BUSY_S * measure.OVER + 15, [])
    phase = document["phases"][0]
    busy = over(children, phase["begin_ns"], phase["end_ns"])
    exact = measure.end_batch(children) and document["exact"]
    found = {
        "idle": idle,
        "busy": busy,
        "latency_us": [round(value / 1000, 1) for value in phase["latency_ns"]],
        "skipped": phase["skipped"],
        "exact": exact,
    }
    return found | ({"managed": measure.managed_of(status, [children[0], urgent])} if managed else {})


HEAD = (
    "programs that belong together",
    "n",
    "native, urgent idle",
    "gpreempt",
    "of native",
    "native, urgent at work",
    "gpreempt",
    "of native",
    "urgent p50/p99 native",
    "gpreempt",
    "exact",
    "aim",
)


def figures(results: dict[str, Any], quantile: Callable[[list[float], float], float | None]) -> dict[str, Any]:
    """{kind: what the table shows}."""
    found = {}
    for kind, managers in results.get("pairs", {}).items():
        native, ours = managers.get("native", {}), managers.get("gpreempt", {})
        one = {
            "n": (len(native), len(ours)),
            "exact": all(e["exact"] for e in (*native.values(), *ours.values())),
            "xid": sum(len(e.get("xid") or ()) for e in (*native.values(), *ours.values())),
        }
        for name, repeats in (("native", native), ("ours", ours)):
            for key in ("idle", "busy"):
                one[name, key] = statistics.median(e[key] for e in repeats.values()) if repeats else None
            for share in (0.5, 0.99):
                values = [quantile(e["latency_us"], share) for e in repeats.values() if e["latency_us"]]
                one[name, share] = statistics.median(values) if values else None
        for key in ("idle", "busy"):
            one[key] = (
                100 * one["ours", key] / one["native", key]
                if one["native", key] and one["ours", key] is not None
                else None
            )
        found[kind] = one
    return found


def judge(found: dict[str, Any]) -> list[tuple[str, str, bool | None]]:
    """[(kind, words, True, False or None)]."""
    return [
        (
            TITLES[kind],
            "%s: at least %.0f %% of native"
            % ({"idle": "urgent program connected and idle", "busy": "urgent program at work"}[key], aim),
            None if one[key] is None else one[key] >= aim and one["exact"],
        )
        for kind, one in found.items()
        for key, aim in AIMS.items()
    ]


def cells(found: dict[str, Any]) -> list[list[str]]:
    def text(value, form):
        return "–" if value is None else form % value

    table = []
    for kind, one in found.items():
        answers = [answer for title, _, answer in judge(found) if title == TITLES[kind]]
        row = [TITLES[kind], "%d, %d" % one["n"]]
        for key in ("idle", "busy"):
            row += [text(one["native", key], "%.1f /s"), text(one["ours", key], "%.1f /s"), text(one[key], "%.0f %%")]
        row += ["%s/%s" % (text(one[name, 0.5], "%.0f"), text(one[name, 0.99], "%.0f")) for name in ("native", "ours")]
        table.append(
            [
                *row,
                "yes" if one["exact"] else "**WRONG**",
                "**missed**" if False in answers else "not known" if None in answers else "reached",
            ]
        )
    return table
