# SPDX-License-Identifier: MIT
"""What `gpreempt sim` says about the rows of bench/nvidia/run, beside what was measured."""
import json
import os
import subprocess
import tempfile

import rows

ONE, FOUR, THREE = ("--mix", "h200-one"), ("--mix", "h200-four"), ("--mix", "h200-three")
EIGHT = FOUR + ("--set", "mix.batch=8")
SEED = "7"
# row: options of the simulator, the run to look at, the client
ROWS = {
    "alone": (ONE, "alone", "urgent"), "native-1": (ONE, "stock", "urgent"), "gpreempt-1": (ONE, "hpf", "urgent"),
    "native-4": (FOUR, "stock", "urgent"), "gpreempt-4": (FOUR, "hpf", "urgent"), "native-8": (EIGHT, "stock", "urgent"), "gpreempt-8": (EIGHT, "hpf", "urgent"),
    "native-3": (THREE, "stock", "urgent"), "native-3-mid": (THREE, "stock", "mid"), "gpreempt-3": (THREE, "hpf", "urgent"),
    "gpreempt-3-mid": (THREE, "hpf", "mid"), "mid-alone": (THREE, "alone", "mid"),
    "list-alone": (("--mix", "LIST"), "alone", "urgent"), "list-native": (("--mix", "LIST"), "stock", "urgent"), "list-gpreempt": (("--mix", "LIST"), "hpf", "urgent"),
} | {"hint-%d" % lead: (ONE + ("--set", "mix.hint=%dus" % lead), "hpf", "urgent") for lead in rows.LEADS}

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


def simulate(gpreempt, options):
    command = [gpreempt, "sim", *options, "--device", "h200", "--compare", "alone,stock,hpf", "--seed", SEED, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stderr.strip()))
    return {one["policy"]: one for one in json.loads(done.stdout)["runs"]}


def run(gpreempt):
    """{row: {p50, p90, p99, kept}} in µs and percent."""
    known, found = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "list.ini")
        with open(path, "w", encoding="utf-8") as file:
            file.write(LIST_MIX)
        for name, (options, policy, client) in ROWS.items():
            real = tuple(path if word == "LIST" else word for word in options)
            if real not in known:
                known[real] = simulate(gpreempt, real)
            runs = known[real]
            one = next(c for c in runs[policy]["clients"] if c["name"] == client)
            alone = next((c["throughput_per_s"] for c in runs["alone"]["clients"] if c["name"].startswith("batch")), None)
            batch = sum(c["throughput_per_s"] for c in runs[policy]["clients"] if c["name"].startswith("batch"))
            found[name] = {key: one["latency_us"][key] for key in ("p50", "p90", "p99")}
            found[name]["kept"] = 100 * batch / alone if alone and policy != "alone" and client == "urgent" else None
    return found


HEAD = ("row", "p50", "p90", "p99", "batch kept")


def cells(predicted, measured):
    table = []
    for name, prediction in predicted.items():
        if name not in measured:
            continue
        row = [rows.ROWS[name].title]
        for key in ("p50", "p90", "p99"):
            real = measured[name][key]
            row.append("%.0f / %.0f (%+.0f %%)" % (prediction[key], real, 100 * (prediction[key] / real - 1)) if real else "–")
        real = measured[name]["kept"]
        row.append("%.1f / %.1f %% (%+.1f)" % (prediction["kept"], real, prediction["kept"] - real) if real is not None and prediction["kept"] is not None else "–")
        table.append(row)
    return table
