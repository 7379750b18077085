# SPDX-License-Identifier: MIT
"""What bench/nvidia/run measures: rows, the set-ups that give them, their order, and what is dropped when the time is up.

A set-up is one start of programs; each of its rows is a stretch of requests (a phase) of the same urgent process. Set-ups are repeated in
passes, so that what is compared is measured in turn and not one after the other.
"""
from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Iterable, Iterator

PERIOD_US, KERNEL_US = 20000, 200  # one kernel about every 20 ms
MID_PERIOD_US, MID_KERNEL_US = 10000, 2000
URGENT, MID, BATCH = 80, 50, 20  # priorities
LEADS = (100, 200, 300, 400, 800)
HINT_US, ASTRAY = 300, 0.2  # of the rows with wrong and missing hints
TORCH_START_S = 12.0  # of a PyTorch program, beyond that
START_S = 1.2  # assumed to start and end the programs of a set-up, until it was seen (H200: about 1)
BASELINE_S = 2.0  # a batch program by itself
SCALE = float(os.environ.get("NVBENCH_SCALE", "1"))  # of what lasts so long whatever is asked for: tests are shorter
PAIR_SETTLE_S, PAIR_IDLE_S, PAIR_BUSY_S = (
    2.0 * SCALE,
    2.5 * SCALE,
    3.0 * SCALE,
)  # programs that belong together: until all is quiet; with an urgent program that is idle; at work
LAUNCH_ROUNDS, LAUNCH_KINDS, LAUNCH_ROUND_S = 60, 3, 0.027


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    title: str
    reference: str = "alone"  # its latency is told over this row's
    native: str = ""  # its batch is compared with this row's
    hint: int = -1  # µs ahead; -1: none
    wrong: float = 0
    miss: float = 0
    lists: bool = False  # a request is a kernel list
    torch: str = ""  # a request of a PyTorch program (pytorch.py), launched as a graph or eager
    us: float = KERNEL_US  # a kernel of a request
    pieces: int = 1  # kernels of a request
    period_us: float = PERIOD_US
    outstanding: int = 1
    seconds: float = 0  # of the phase; 0: as many requests as are asked for
    llm: str = ""  # a request of a language model (llm.py): by CUDA graphs or eager. Latency: to the first token
    token: bool = False  # the same requests as the row before it: the time between tokens
    http: str = ""  # a request to a web server (libgpreempt/example/serve_http.py), plain or with a hint


@dataclasses.dataclass(frozen=True)
class Setup:
    name: str
    rows: tuple = ()
    manager: str = ""  # "", gpreempt or mps
    batch: int = 0
    ms: int = 50
    mid: str = ""  # row of the middle one
    alone: str = ""  # measures a batch program by itself: 50, 10, list or torch
    fault: str = ""
    settings: tuple = ()  # of gpreempt.conf: (section.key, value)
    passes: int = 3
    kinds: tuple = ()  # of the batch programs, where they are not all be: torch, jax
    pair: str = ""  # two batch programs that belong together (together.py): ipc, wait or mp
    launches: int = 0  # sets of processes whose launches a second are compared (launches.py)


def hint_row(lead: int) -> Row:
    return Row("hint-%d" % lead, "1 batch, gpreempt, hint %d µs ahead" % lead, native="native-1", hint=lead)


def shape_rows(kind: str, title: str, **more: object) -> tuple[Row, ...]:
    return (
        Row(kind + "-alone", title + ": alone", kind + "-alone", **more),
        Row(kind + "-native", title + ": 1 batch, native", kind + "-alone", **more),
        Row(kind + "-gpreempt", title + ": 1 batch, gpreempt", kind + "-alone", kind + "-native", **more),
    )


LLM_BESIDE = (("alone", "alone"), ("native", "beside training, native"), ("gpreempt", "beside training, gpreempt"))
LLM_PERIOD_US = {"graph": 80000, "eager": 800000}  # kernel by kernel an answer took 0.5 s on an H200
LLM_SECONDS = {"graph": 16.0, "eager": 14.4}  # 200 requests by graphs: the p99 of a repeat is not its slowest one
TOKEN = "-token"
# Of the daemon's settings, to be compared in one run.
LLM_VARIANTS = (
    ("own-slice", "long_slice = 0", (("nvidia.long_slice", "0"),)),
    ("latency", "protect = latency", (("policy.protect", "latency"),)),
    ("throughput", "protect = throughput", (("policy.protect", "throughput"),)),
)


def llm_rows(kind: str, title: str, mode: str, alone: str, beside: Iterable[tuple[str, str]]) -> Iterator[Row]:
    """Two rows for each: to the first token, and from each token to the next."""
    for name, words in beside:
        for token in (False, True):
            yield Row(
                "%s-%s%s" % (kind, name, TOKEN if token else ""),
                "%s, %s: %s" % (title, words, "per token" if token else "first token"),
                alone + "-alone" + (TOKEN if token else ""),
                kind + "-native" + (TOKEN if token else "") if name == "gpreempt" else "",
                period_us=LLM_PERIOD_US[mode],
                seconds=LLM_SECONDS[mode],
                llm=mode,
                token=token,
            )


ROWS = {
    row.name: row
    for row in (
        Row("alone", "alone"),
        Row("native-1", "1 batch, native time slicing"),
        Row("mps-1", "1 batch, MPS with client priorities"),
        Row("gpreempt-1", "1 batch, gpreempt", native="native-1"),
        *(hint_row(lead) for lead in LEADS),
        Row(
            "hint-wrong",
            "hint %d µs ahead, and after %d %% of the requests a hint that nothing follows" % (HINT_US, 100 * ASTRAY),
            native="native-1",
            hint=HINT_US,
            wrong=ASTRAY,
        ),
        Row(
            "hint-miss",
            "hint %d µs ahead, %d %% of the requests not announced" % (HINT_US, 100 * ASTRAY),
            native="native-1",
            hint=HINT_US,
            miss=ASTRAY,
        ),
        Row("native-4", "4 batch, native"),
        Row("gpreempt-4", "4 batch, gpreempt", native="native-4"),
        Row("channel-4", "4 batch, gpreempt without privilege: each agent acts on its own context", native="native-4"),
        Row("native-8", "8 batch, native"),
        Row("gpreempt-8", "8 batch, gpreempt", native="native-8"),
        Row("native-3", "three priorities, native: urgent"),
        Row("native-3-mid", "three priorities, native: middle", reference="mid-alone"),
        Row("gpreempt-3", "three priorities, gpreempt: urgent", native="native-3"),
        Row("gpreempt-3-mid", "three priorities, gpreempt: middle", reference="mid-alone"),
        Row(
            "mid-alone", "the middle one alone (2 ms)", reference="mid-alone", us=MID_KERNEL_US, period_us=MID_PERIOD_US
        ),
        Row("list-alone", "kernel list (ResNet-50, batch 4), alone", reference="list-alone", lists=True),
        Row("list-native", "kernel list beside a training list, native", reference="list-alone", lists=True),
        Row(
            "list-gpreempt",
            "kernel list beside a training list, gpreempt",
            reference="list-alone",
            native="list-native",
            lists=True,
        ),
        *(
            Row(
                "%s-%s" % (kind, row),
                "PyTorch, %s: %s" % (how, title),
                reference=kind + "-alone",
                native=kind + "-native" if row == "gpreempt" else "",
                torch=kind,
            )
            for kind, how in (("graph", "CUDA graph"), ("eager", "kernel by kernel"))
            for row, title in (
                ("alone", "a transformer that serves, alone"),
                ("native", "beside one that is trained, native"),
                ("gpreempt", "beside one that is trained, gpreempt"),
            )
        ),
        *shape_rows("long", "5 ms", us=5000, seconds=5),
        *shape_rows(
            "load", "4 ms, a request every 5 ms (80 % load)", us=4000, period_us=5000, outstanding=8, seconds=4
        ),
        *shape_rows("pieces", "200 kernels of 10 µs, launched at once", us=10, pieces=200, seconds=5),
        *shape_rows("rate", "200 µs, 2000 a second", period_us=500, outstanding=32, seconds=4),
        Row(
            "rate-latency",
            "200 µs, 2000 a second: 1 batch, gpreempt, protect = latency",
            "rate-alone",
            "rate-native",
            period_us=500,
            outstanding=32,
            seconds=4,
        ),
        Row(
            "rate-balanced",
            "200 µs, 2000 a second: 1 batch, gpreempt, protect = balanced",
            "rate-alone",
            "rate-native",
            period_us=500,
            outstanding=32,
            seconds=4,
        ),
        *llm_rows("llm-graph", "LLM by CUDA graphs", "graph", "llm-graph", LLM_BESIDE),
        *llm_rows("llm-eager", "LLM kernel by kernel", "eager", "llm-eager", LLM_BESIDE),
        *llm_rows(
            "llm-graph",
            "LLM by CUDA graphs",
            "graph",
            "llm-graph",
            tuple((name, "beside training, gpreempt, %s" % words) for name, words, _ in LLM_VARIANTS),
        ),
        *llm_rows(
            "llm-eager",
            "LLM kernel by kernel",
            "eager",
            "llm-eager",
            tuple((name, "beside training, gpreempt, %s" % words) for name, words, _ in LLM_VARIANTS),
        ),
        *llm_rows(
            "llm-jax",
            "LLM by CUDA graphs",
            "graph",
            "llm-graph",
            (("native", "beside JAX training, native"), ("gpreempt", "beside JAX training, gpreempt")),
        ),
        *llm_rows(
            "llm-both",
            "LLM by CUDA graphs",
            "graph",
            "llm-graph",
            (
                ("native", "beside PyTorch and JAX training, native"),
                ("gpreempt", "beside PyTorch and JAX training, gpreempt"),
            ),
        ),
        Row("http-alone", "web server, from the socket to the answer: alone", "http-alone", http="plain", seconds=5),
        Row("http-native", "web server: 1 batch, native", "http-alone", http="plain", seconds=5),
        Row("http-gpreempt", "web server: 1 batch, gpreempt", "http-alone", "http-native", http="plain", seconds=5),
        Row(
            "http-hint",
            "web server: 1 batch, gpreempt, hint when a request arrives",
            "http-alone",
            "http-native",
            http="hint",
            seconds=5,
        ),
    )
}

SETUPS = {
    setup.name: setup
    for setup in (
        Setup("batch-50", alone="50"),
        Setup("alone", rows=("alone",)),
        Setup("native-1", rows=("native-1",), batch=1),
        Setup("gpreempt-1", rows=("gpreempt-1", "hint-300"), manager="gpreempt", batch=1),
        Setup("batch-10", alone="10"),
        Setup("native-4", rows=("native-4",), batch=4, ms=10),
        Setup("gpreempt-4", rows=("gpreempt-4",), manager="gpreempt", batch=4, ms=10),
        Setup("mid-alone", rows=("mid-alone",)),
        Setup("native-3", rows=("native-3",), batch=1, mid="native-3-mid"),
        Setup("gpreempt-3", rows=("gpreempt-3",), manager="gpreempt", batch=1, mid="gpreempt-3-mid"),
        Setup("fault-daemon", fault="daemon", manager="gpreempt", batch=4, ms=10, passes=1),
        Setup("fault-urgent", fault="urgent", manager="gpreempt", batch=1, passes=1),
        Setup("fault-batch", fault="batch", manager="gpreempt", batch=4, ms=10, passes=1),
        Setup(
            "hints",
            rows=tuple("hint-%d" % lead for lead in LEADS if lead != 300) + ("hint-wrong", "hint-miss"),
            manager="gpreempt",
            batch=1,
        ),
        Setup(
            "channel-4",
            rows=("channel-4",),
            manager="gpreempt",
            batch=4,
            ms=10,
            settings=(("nvidia.mechanism", "channel"),),
        ),
        Setup("native-8", rows=("native-8",), batch=8, ms=10),
        Setup("gpreempt-8", rows=("gpreempt-8",), manager="gpreempt", batch=8, ms=10),
        Setup("batch-list", alone="list"),
        Setup("list-alone", rows=("list-alone",)),
        Setup("list-native", rows=("list-native",), batch=1),
        Setup("list-gpreempt", rows=("list-gpreempt",), manager="gpreempt", batch=1),
        Setup("mps-1", rows=("mps-1",), manager="mps", batch=1),
        Setup("batch-torch", alone="torch"),
        Setup("torch-alone", rows=("graph-alone", "eager-alone")),
        Setup("torch-native", rows=("graph-native", "eager-native"), batch=1),
        Setup("torch-gpreempt", rows=("graph-gpreempt", "eager-gpreempt"), manager="gpreempt", batch=1),
        *(
            setup
            for kind in ("long", "load", "pieces", "rate")
            for setup in (
                Setup(kind + "-alone", rows=(kind + "-alone",)),
                Setup(kind + "-native", rows=(kind + "-native",), batch=1),
                Setup(kind + "-gpreempt", rows=(kind + "-gpreempt",), manager="gpreempt", batch=1),
            )
        ),
        *(
            Setup(
                "rate-" + protect,
                rows=("rate-" + protect,),
                manager="gpreempt",
                batch=1,
                settings=(("policy.protect", protect),),
            )
            for protect in ("latency", "balanced")
        ),
        Setup("batch-jax", alone="jax", passes=2),
        Setup("llm-alone", rows=("llm-graph-alone", "llm-eager-alone")),
        Setup("llm-native", rows=("llm-graph-native", "llm-eager-native"), batch=1, kinds=("torch",)),
        Setup(
            "llm-gpreempt",
            rows=("llm-graph-gpreempt", "llm-eager-gpreempt"),
            manager="gpreempt",
            batch=1,
            kinds=("torch",),
        ),
        *(
            Setup(
                "llm-" + name,
                rows=("llm-graph-" + name, "llm-eager-" + name),
                manager="gpreempt",
                batch=1,
                kinds=("torch",),
                settings=settings,
                passes=2,
            )
            for name, _, settings in LLM_VARIANTS
        ),
        Setup("llm-jax-native", rows=("llm-jax-native",), batch=1, kinds=("jax",)),
        Setup("llm-jax-gpreempt", rows=("llm-jax-gpreempt",), manager="gpreempt", batch=1, kinds=("jax",)),
        Setup("llm-both-native", rows=("llm-both-native",), batch=2, kinds=("torch", "jax")),
        Setup("llm-both-gpreempt", rows=("llm-both-gpreempt",), manager="gpreempt", batch=2, kinds=("torch", "jax")),
        Setup("http-alone", rows=("http-alone",)),
        Setup("http-native", rows=("http-native",), batch=1),
        Setup("http-gpreempt", rows=("http-gpreempt", "http-hint"), manager="gpreempt", batch=1),
        *(
            Setup("%s-%s" % (pair, manager or "native"), pair=pair, manager=manager)
            for pair in ("ipc", "wait", "mp")
            for manager in ("", "gpreempt")
        ),
        Setup("launches", launches=4, manager="gpreempt"),
    )
}

AIMED = (
    "batch-50",
    "alone",
    "native-1",
    "gpreempt-1",
    "batch-10",
    "native-4",
    "gpreempt-4",
    "mid-alone",
    "native-3",
    "gpreempt-3",
)
FAULTS = ("fault-daemon", "fault-urgent", "fault-batch")
STATED = (
    "hints",
    "channel-4",
    "native-8",
    "gpreempt-8",
    "batch-list",
    "list-alone",
    "list-native",
    "list-gpreempt",
    "mps-1",
)
TORCH = (
    "batch-torch",
    "torch-alone",
    "torch-native",
    "torch-gpreempt",
)  # only where they are asked for: each program takes long to start
SHAPES = (
    "batch-50",
    *(kind + "-" + how for kind in ("long", "load", "pieces", "rate") for how in ("alone", "native", "gpreempt")),
    "rate-latency",
    "rate-balanced",
)
LLM = ("batch-torch", "llm-alone", "llm-native", "llm-gpreempt")
VARIANTS = tuple("llm-" + name for name, _, _ in LLM_VARIANTS)
JAX = ("batch-jax", "llm-jax-native", "llm-jax-gpreempt")
BOTH = ("llm-both-native", "llm-both-gpreempt")
HTTP = ("http-alone", "http-native", "http-gpreempt")
PAIRS = tuple("%s-%s" % (pair, how) for pair in ("ipc", "wait", "mp") for how in ("native", "gpreempt"))
LAUNCHES = ("launches",)
# Only where they are asked for, as those of TORCH: all of them take longer than one command may.
NAMED = (*SHAPES[1:], *PAIRS, *LAUNCHES, *HTTP, *TORCH, *LLM[1:], *VARIANTS, *JAX, *BOTH)
# What the rows without an aim are told over is measured beside them.
PARTS = {
    "aims": AIMED,
    "faults": FAULTS,
    "stated": ("batch-50", "alone", "native-1", "batch-10", "native-4", *STATED),
    "hints": ("batch-50", "alone", "native-1", "gpreempt-1", "hints"),
    "lists": ("batch-list", "list-alone", "list-native", "list-gpreempt"),
    "torch": TORCH,
    "first": ("batch-50", "alone", "native-1"),
    "three": ("batch-50", "alone", "mid-alone", "native-3", "gpreempt-3"),
    **{
        kind: ("batch-50", *(name for name in SHAPES if name.startswith(kind + "-")))
        for kind in ("long", "load", "pieces", "rate")
    },
    "shapes": SHAPES,
    "llm": LLM,
    "variants": ("batch-torch", "llm-alone", "llm-gpreempt", *VARIANTS),
    "jax": ("llm-alone", *JAX),
    "both": ("batch-torch", "batch-jax", "llm-alone", *BOTH),
    "http": ("batch-50", *HTTP),
    "pairs": PAIRS,
}


def kind_of(setup: Setup) -> str:
    """Of batch program: how it is called among those measured by themselves."""
    first = ROWS[setup.rows[0]]
    return setup.kinds[0] if setup.kinds else "list" if first.lists else "torch" if first.torch else str(setup.ms)


def kinds_of(setup: Setup) -> list[str]:
    """Of each batch program of a set-up."""
    return list(setup.kinds) or [kind_of(setup)] * setup.batch


def needs(setup: Setup) -> list[str]:
    """Python packages without which a set-up cannot be measured."""
    first = ROWS[setup.rows[0]] if setup.rows else None
    words = {setup.alone, setup.pair, *setup.kinds}
    return (["torch"] if words & {"torch", "mp"} or (first and (first.torch or first.llm)) else []) + (
        ["jax"] if "jax" in words else []
    )


def order(chosen: set[str], repeats: int) -> list[tuple[Setup, int]]:
    """[(set-up, number of the repeat)], the most wanted first: what does not fit the time is dropped from the end.

    Everything once; then the rows with an aim again; then the others again."""

    def passes(names, numbers):
        return [
            (SETUPS[name], number)
            for number in numbers
            for name in names
            if name in chosen and number < SETUPS[name].passes
        ]

    again = range(1, repeats)
    return passes(AIMED + FAULTS + STATED + NAMED, (0,)) + passes(AIMED, again) + passes(STATED + NAMED, again)


def choose(words: list[str]) -> set[str]:
    """The names of set-ups that words (set-ups, rows or parts) ask for; ValueError with a sentence."""
    if not words:
        return set(SETUPS) - set(NAMED)
    chosen = set()
    for word in words:
        if word in PARTS:
            chosen.update(PARTS[word])
        elif word in SETUPS:
            chosen.add(word)
        elif word in ROWS:
            base = word[: -len(TOKEN)] if ROWS[word].token else word
            chosen.update(name for name, setup in SETUPS.items() if base in (*setup.rows, setup.mid))
        else:
            raise ValueError("there is no row %s; these are: %s" % (word, ", ".join([*PARTS, *SETUPS])))
    # What a batch program keeps is told over what it does by itself.
    for name in list(chosen):
        setup = SETUPS[name]
        if setup.batch and not setup.fault:
            chosen.update("batch-" + kind for kind in kinds_of(setup))
    return chosen


def requests_of(arguments: argparse.Namespace) -> int:
    return max(1, -(-arguments.requests // arguments.repeats))


def requests_in(row: Row, requests: int) -> int:
    """Requests of one phase."""
    return max(1, round(SCALE * row.seconds * 1e6 / row.period_us)) if row.seconds else requests


def phase_seconds(row: Row, requests: int) -> float:
    return requests_in(row, requests) * row.period_us / 1e6


def started_by_python(setup: Setup) -> float:
    """How many programs of a set-up take long to start, one after the other."""
    first = ROWS[setup.rows[0]] if setup.rows else None
    if setup.alone in ("torch", "jax") or setup.pair == "mp":
        return 1
    if first and first.llm:  # the batch programs start beside the server
        return 2
    return 1 + setup.batch if first and first.torch else 0.5 if first and first.http else 0


def seconds_of(setup: Setup, requests: int, start_s: float = START_S) -> float:
    """How long a set-up is expected to take."""
    start_s += TORCH_START_S * started_by_python(setup)
    if setup.alone:
        return start_s / 2 + BASELINE_S
    if setup.fault:
        return start_s + 3
    if setup.pair:
        return start_s + PAIR_SETTLE_S + PAIR_IDLE_S + PAIR_BUSY_S
    if setup.launches:
        return setup.launches * (2 * start_s + LAUNCH_ROUNDS * LAUNCH_KINDS * LAUNCH_ROUND_S)
    slow = 2.2 if setup.manager == "mps" else 1.0
    return start_s + sum(phase_seconds(ROWS[name], requests) for name in setup.rows) * slow
