# SPDX-License-Identifier: MIT
"""What the agent costs a program that has the GPU to itself: launches of empty kernels a second, by the same program without the agent, with it, and with it under a daemon.

The three processes of a set take turns of 25 ms on the same core, so that what changes in the machine changes for all of them. Even so one turn differs from the next by a tenth on a virtual
machine, and how a process lies in memory matters, too: hence many rounds and several sets.
"""
from __future__ import annotations

import json
import os
import random
import statistics
from typing import Any

import rows
from programs import Stage, Trouble, find
from rows import Setup

KINDS = ("plain", "agent", "daemon")
TITLES = {"agent": "with the agent, without a daemon", "daemon": "with the agent and gpreemptd"}
AIM = 0.99


def run(stage: Stage, setup: Setup) -> dict[str, Any]:
    """{"sets": [{kind: [launches a second]}]}, interleaved round by round."""
    stage.daemon(setup.settings)
    return {"sets": [one_set(stage, number) for number in range(setup.launches)]}


def one_set(stage: Stage, number: int) -> dict[str, Any]:
    agent = find(stage.binaries, "libgpreempt-agent.so")
    if not agent:
        raise Trouble("libgpreempt-agent.so is not in %s" % stage.binaries)
    turn = os.path.join(stage.folder, "turn-%d" % (stage.count + 1))
    with open(turn, "wb") as file:
        file.write(bytes(4096))
    children = {}
    for place, kind in enumerate(
        KINDS[number % len(KINDS) :] + KINDS[: number % len(KINDS)]
    ):  # none is always the first to start
        path = os.path.join(stage.folder, "launches-%d.json" % (stage.count + 1))
        command = [
            stage.program("hp"),
            "--rate",
            "%.6f" % stage.rate,
            "--json",
            path,
            "--launches",
            str(rows.LAUNCH_ROUNDS),
            "--turn",
            turn,
            "--turn-of",
            "%d/%d" % (place, len(KINDS)),
            "--core",
            str(sorted(os.sched_getaffinity(0))[-1 - number % len(os.sched_getaffinity(0))]),
        ]
        extra = {
            "plain": {},
            "agent": {
                "LD_PRELOAD": agent,
                "GPREEMPT_SOCKET": os.path.join(stage.folder, "nobody"),
                "GPREEMPT_PRIORITY": str(rows.URGENT),
            },
            "daemon": {},
        }[kind]
        children[kind] = stage.start(
            "launches", stage.managed(rows.URGENT if kind == "daemon" else None, command), extra
        )
        children[kind].json = path
    found = {}
    for kind, child in children.items():
        status = child.wait(60 + 3 * rows.LAUNCH_ROUNDS * rows.LAUNCH_KINDS * rows.LAUNCH_ROUND_S)
        if status or not child.output().rstrip().endswith("exact"):
            raise Trouble("%s ended with status %d; %s" % (child.name, status, child.said()))
        with open(child.json, encoding="ascii") as file:
            found[kind] = json.load(file)
    return found


def ratios(one: dict[str, Any], kind: str) -> list[float]:
    """Round by round; during the first the other processes may still be starting."""
    first = 1 if len(one["plain"]) > 3 else 0
    return [ours / plain for ours, plain in list(zip(one[kind], one["plain"]))[first:] if plain]


def figures(results: dict[str, Any]) -> dict[str, Any]:
    """{kind: ratio, half of its 95 % interval, launches a second, sets, rounds}. The interval: of the median over sets drawn again and again, and rounds of each."""
    sets = [one for found in results.get("launches", ()) for one in found["sets"]]
    found = {}
    for kind in TITLES if sets else ():
        each = [ratios(one, kind) for one in sets]
        draw, again = random.Random(1), []
        for _ in range(1000):
            again.append(
                statistics.median(
                    ratio for one in draw.choices(each, k=len(each)) for ratio in draw.choices(one, k=len(one))
                )
            )
        again.sort()
        found[kind] = {
            "ratio": statistics.median(ratio for one in each for ratio in one),
            "low": again[25],
            "high": again[974],
            "half": (again[974] - again[25]) / 2,
            "rate": statistics.median(value for one in sets for value in one[kind]),
            "plain": statistics.median(value for one in sets for value in one["plain"]),
            "sets": len(sets),
            "rounds": sum(len(one) for one in each),
        }
    return found


HEAD = ("launches a second", "sets, rounds", "without the agent", "with", "ratio", "95 % interval", "aim")


def judge(found: dict[str, Any]) -> list[tuple[str, str, bool | None]]:
    """[(title, words, True, False or None)]: not known as long as the figure is not sharp enough."""
    return [
        (
            "launches " + TITLES[kind],
            "ratio at least %.2f, known to ± 1 %%" % AIM,
            None if one["half"] > 0.01 else one["ratio"] >= AIM,
        )
        for kind, one in found.items()
    ]


def cells(found: dict[str, Any]) -> list[list[str]]:
    answers = {title: answer for title, _, answer in judge(found)}
    return [
        [
            TITLES[kind],
            "%d, %d" % (one["sets"], one["rounds"]),
            "%.0f" % one["plain"],
            "%.0f" % one["rate"],
            "%.4f" % one["ratio"],
            "%.4f to %.4f" % (one["low"], one["high"]),
            {True: "reached", False: "**missed**", None: "not known: the interval is too wide"}[
                answers["launches " + TITLES[kind]]
            ],
        ]
        for kind, one in found.items()
    ]
