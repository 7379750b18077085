# SPDX-License-Identifier: MIT
"""Whether torch.multiprocessing loses anything under gpreempt while an urgent program is connected and idle: pairs with and without gpreempt take turns of 0.65 s on the same cores.

usage: turns.py --bin FOLDER --out FOLDER [--sets 3] [--windows 8]

Such a pair lives on its host, and one start differs from the next by a fifth. So several pairs of each kind start once, only one at a time is at work, and each turn with gpreempt is compared with the
turn without it beside it. The figure is the median of these ratios; its interval is that of the median over sets drawn again and again, as for launches.
"""
from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from typing import Any

import rows
from programs import Child, Ended, Signals, Stage, Trouble, xid_lines

KINDS = ("native", "gpreempt")
AIM = 0.9
CORES = 4  # of both processes of a pair, and of every pair


def start(stage: Stage, arguments: argparse.Namespace) -> dict[str, list[Child]]:
    """{kind: [pairs]}, each ready and waiting for its turn."""
    turn = os.path.join(stage.folder, "turn")
    with open(turn, "wb") as file:
        file.write(bytes(4096))
    cores, children = sorted(os.sched_getaffinity(0))[-CORES:], {kind: [] for kind in KINDS}
    for number in range(arguments.sets):
        for place, kind in enumerate(KINDS if number % 2 == 0 else KINDS[::-1]):  # neither is always the first
            path = os.path.join(stage.folder, "turns-%d.json" % (stage.count + 1))
            command = [
                *stage.python["mp"],
                *("--turn", turn, "--turn-of", "%d/%d" % (2 * number + place, 2 * arguments.sets)),
                *("--windows", str(arguments.windows), "--json", path, "--cores", ",".join(map(str, cores))),
            ]
            child = stage.start("pair", stage.managed(rows.BATCH if kind == "gpreempt" else None, command))
            child.json = path
            children[kind].append(child)
    return children


def finish(children: dict[str, list[Child]], seconds: float) -> dict[str, list[list[float]]]:
    """{kind: [[rounds a second in each turn]]}."""
    found = {}
    for kind, pairs in children.items():
        found[kind] = []
        for child in pairs:
            status = child.wait(seconds)
            if status or not child.output().rstrip().endswith("exact"):
                raise Trouble("%s ended with status %d; %s" % (child.name, status, child.said()))
            with open(child.json, encoding="ascii") as file:
                found[kind].append(json.load(file))
    return found


def ratios(found: dict[str, list[list[float]]]) -> list[list[float]]:
    """Of each set, turn by turn; in the first all others may still be starting."""
    first = 1 if min(len(one) for pairs in found.values() for one in pairs) > 3 else 0
    return [
        [ours / native for ours, native in list(zip(*pair))[first:] if native]
        for pair in zip(found["gpreempt"], found["native"])
    ]


def figure(found: dict[str, list[list[float]]]) -> tuple[float, float, float]:
    """(ratio, the low and the high end of its 95 % interval)."""
    each, draw = ratios(found), random.Random(1)
    again = sorted(
        statistics.median(ratio for one in draw.choices(each, k=len(each)) for ratio in draw.choices(one, k=len(one)))
        for _ in range(1000)
    )
    return statistics.median(ratio for one in each for ratio in one), again[25], again[974]


def measured(stage: Stage, arguments: argparse.Namespace) -> dict[str, Any]:
    stage.daemon()
    urgent = stage.urgent(["--us", str(rows.KERNEL_US), "--requests", "1"], rows.URGENT)
    urgent.wait_line("ready")
    begun, children = time.monotonic(), start(stage, arguments)
    for pairs in children.values():
        for child in pairs:
            child.wait_line("ready", 120)
    print("all pairs are ready after %.0f s" % (time.monotonic() - begun), flush=True)
    found = finish(children, 60 + 2 * arguments.sets * arguments.windows)
    status = stage.status() or {}
    stage.go(urgent)
    urgent.wait(20)
    return {"rates": found, "status": (status.get("devices") or [{}])[0].get("stats")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--small", action="store_true", help="sizes for a machine without a GPU")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, Signals.handle)
    signal.signal(signal.SIGINT, Signals.handle)
    os.makedirs(arguments.out, exist_ok=True)
    xids = xid_lines()
    with tempfile.TemporaryDirectory(prefix="nvbench-turns.") as folder:
        stage = Stage(folder, os.path.abspath(arguments.bin))
        if arguments.small:
            stage.python["mp"].append("--small")
        try:
            stage.calibrate()
            stage.close()
            found = measured(stage, arguments)
        except (Trouble, Ended) as trouble:
            print("turns: %s" % trouble)
            return 1
        finally:
            stage.close()
    with open(os.path.join(arguments.out, "turns.json"), "w", encoding="utf-8") as file:
        json.dump(found, file)
    for kind, pairs in found["rates"].items():
        for rates in pairs:
            print("%-9s %s" % (kind, " ".join("%.0f" % value for value in rates)))
    ratio, low, high = figure(found["rates"])
    print(
        "torch.multiprocessing, urgent program connected and idle: %.3f of native (95 %% interval %.3f to %.3f; %d sets, "
        "%d turns); the aim is %.2f: %s"
        % (
            ratio,
            low,
            high,
            arguments.sets,
            arguments.windows,
            AIM,
            "reached" if low >= AIM else "missed" if high < AIM else "not known",
        )
    )
    print("stats: %s" % json.dumps(found["status"]))
    new = [one for one in xid_lines() or [] if one not in (xids or [])]
    print("\n".join(new) if new else "no Xid" if xids is not None else "the kernel's log cannot be read")
    return int(bool(new))


if __name__ == "__main__":
    sys.exit(main())
