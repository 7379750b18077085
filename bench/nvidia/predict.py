# SPDX-License-Identifier: MIT
"""What `gpreempt sim` says about the rows of bench/nvidia/run, beside what was measured."""
from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

import rows

ONE, FOUR, THREE = ("--mix", "h200-one"), ("--mix", "h200-four"), ("--mix", "h200-three")
EIGHT = FOUR + ("--set", "mix.batch=8")
SEED = "7"
# row: options of the simulator, the run to look at, the client
ROWS = {
    "alone": (ONE, "alone", "urgent"),
    "native-1": (ONE, "stock", "urgent"),
    "gpreempt-1": (ONE, "hpf", "urgent"),
    "native-4": (FOUR, "stock", "urgent"),
    "gpreempt-4": (FOUR, "hpf", "urgent"),
    "native-8": (EIGHT, "stock", "urgent"),
    "gpreempt-8": (EIGHT, "hpf", "urgent"),
    "native-3": (THREE, "stock", "urgent"),
    "native-3-mid": (THREE, "stock", "mid"),
    "gpreempt-3": (THREE, "hpf", "urgent"),
    "gpreempt-3-mid": (THREE, "hpf", "mid"),
    "mid-alone": (THREE, "alone", "mid"),
    "list-alone": (("--mix", "LIST"), "alone", "urgent"),
    "list-native": (("--mix", "LIST"), "stock", "urgent"),
    "list-gpreempt": (("--mix", "LIST"), "hpf", "urgent"),
} | {"hint-%d" % lead: (ONE + ("--set", "mix.hint=%dus" % lead), "hpf", "urgent") for lead in rows.LEADS}
# Shapes of requests. Where natively more requests arrive than are served, the simulator queues all of them and the benchmark does not: no prediction.
# Rows of language models, web servers and programs that wait for each other: a mix has no host that computes between kernels, and no clients that wait for one another.
SHAPES = {
    "long": ("alone", "native", "gpreempt"),
    "load": ("alone", "gpreempt"),
    "pieces": ("alone", "native", "gpreempt"),
    "rate": ("alone", "gpreempt"),
}
ROWS |= {
    "%s-%s"
    % (kind, name): (
        ("--mix", "SHAPE-" + kind),
        {"alone": "alone", "native": "stock", "gpreempt": "hpf"}[name],
        "urgent",
    )
    for kind, names in SHAPES.items()
    for name in names
}
SHAPE_MIX = """[mix]
title = %(title)s
requests = 2000

[client urgent]
kind = service
priority = 80
arrival = periodic
period = %(period)dus
step = kernel full %(us)dus x%(pieces)d

[client batch]
kind = batch
priority = 20
depth = 2
step = kernel full 50ms
"""

LIST_MIX = """[mix]
title = ResNet-50 inference beside ResNet-50 training on an H200, V100 kernel lists
requests = 1000

[sequence infer]
places = 640
kernels = orion-v100/resnet50_4_fwd.csv

[sequence train]
places = 640
kernels = orion-v100/resnet50_32_fb1.csv

[client urgent]
kind = service
priority = 80
arrival = periodic
period = 20ms
sequence = infer

[client batch]
kind = batch
priority = 20
depth = 64
sequence = train
"""


def simulate(gpreempt: str, options: Sequence[str]) -> dict[str, dict[str, Any]]:
    command = [gpreempt, "sim", *options, "--device", "h200", "--compare", "alone,stock,hpf", "--seed", SEED, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stderr.strip()))
    return {one["policy"]: one for one in json.loads(done.stdout)["runs"]}


def mixes() -> dict[str, str]:
    """{name: text} of those that do not come with the simulator."""
    shapes = {kind: rows.ROWS[kind + "-alone"] for kind in SHAPES}
    return {"LIST": LIST_MIX} | {
        "SHAPE-" + kind: SHAPE_MIX % {"title": row.title, "period": row.period_us, "us": row.us, "pieces": row.pieces}
        for kind, row in shapes.items()
    }


def run(gpreempt: str) -> dict[str, Any]:
    """{row: {p50, p90, p99, kept}} in µs and percent."""
    known, found = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for word, mix in mixes().items():
            with open(os.path.join(folder, word), "w", encoding="utf-8") as file:
                file.write(mix)
        for name, (options, policy, client) in ROWS.items():
            real = tuple(os.path.join(folder, word) if word in mixes() else word for word in options)
            if real not in known:
                known[real] = simulate(gpreempt, real)
            runs = known[real]
            one = next(c for c in runs[policy]["clients"] if c["name"] == client)
            alone = next(
                (c["throughput_per_s"] for c in runs["alone"]["clients"] if c["name"].startswith("batch")), None
            )
            batch = sum(c["throughput_per_s"] for c in runs[policy]["clients"] if c["name"].startswith("batch"))
            found[name] = {key: one["latency_us"][key] for key in ("p50", "p90", "p99")}
            found[name]["kept"] = 100 * batch / alone if alone and policy != "alone" and client == "urgent" else None
    return found


HEAD = ("row", "p50", "p90", "p99", "batch kept")


def cells(predicted: dict[str, Any], measured: dict[str, Any]) -> list[list[str]]:
    table = []
    for name, prediction in predicted.items():
        if name not in measured:
            continue
        row = [rows.ROWS[name].title]
        for key in ("p50", "p90", "p99"):
            real = measured[name][key]
            row.append(
                "%.0f / %.0f (%+.0f %%)" % (prediction[key], real, 100 * (prediction[key] / real - 1)) if real else "–"
            )
        real = measured[name]["kept"]
        row.append(
            "%.1f / %.1f %% (%+.1f)" % (prediction["kept"], real, prediction["kept"] - real)
            if real is not None and prediction["kept"] is not None
            else "–"
        )
        table.append(row)
    return table
