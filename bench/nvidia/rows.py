# SPDX-License-Identifier: MIT
"""What bench/nvidia/run measures: rows, the set-ups that give them, their order, and what is dropped when the time is up.

A set-up is one start of programs; each of its rows is a stretch of requests (a phase) of the same urgent process. Set-ups are repeated in
passes, so that what is compared is measured in turn and not one after the other.
"""
import dataclasses

PERIOD_US, KERNEL_US = 20000, 200      # one kernel about every 20 ms
MID_PERIOD_US, MID_KERNEL_US = 10000, 2000
URGENT, MID, BATCH = 80, 50, 20        # priorities
LEADS = (100, 200, 300, 400, 800)
HINT_US, ASTRAY = 300, 0.2             # of the rows with wrong and missing hints
TORCH_START_S = 12.0                   # of a PyTorch program, beyond that
START_S = 1.2                          # assumed to start and end the programs of a set-up, until it was seen (H200: about 1)
BASELINE_S = 2.0                       # a batch program by itself


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    title: str
    reference: str = "alone"           # its latency is told over this row's
    native: str = ""                   # its batch is compared with this row's
    hint: int = -1                     # µs ahead; -1: none
    wrong: float = 0
    miss: float = 0
    lists: bool = False                # a request is a kernel list
    torch: str = ""                    # a request of a PyTorch program (pytorch.py), launched as a graph or eager


@dataclasses.dataclass(frozen=True)
class Setup:
    name: str
    rows: tuple = ()
    manager: str = ""                  # "", gpreempt or mps
    batch: int = 0
    ms: int = 50
    mid: str = ""                      # row of the middle one
    alone: str = ""                    # measures a batch program by itself: 50, 10, list or torch
    fault: str = ""
    settings: tuple = ()               # of gpreempt.conf: (section.key, value)
    passes: int = 3


def hint_row(lead):
    return Row("hint-%d" % lead, "1 batch, gpreempt, hint %d µs ahead" % lead, native="native-1", hint=lead)


ROWS = {row.name: row for row in (
    Row("alone", "alone"),
    Row("native-1", "1 batch, native time slicing"),
    Row("mps-1", "1 batch, MPS with client priorities"),
    Row("gpreempt-1", "1 batch, gpreempt", native="native-1"),
    *(hint_row(lead) for lead in LEADS),
    Row("hint-wrong", "hint %d µs ahead, and after %d %% of the requests a hint that nothing follows" % (HINT_US, 100 * ASTRAY), native="native-1", hint=HINT_US, wrong=ASTRAY),
    Row("hint-miss", "hint %d µs ahead, %d %% of the requests not announced" % (HINT_US, 100 * ASTRAY), native="native-1", hint=HINT_US, miss=ASTRAY),
    Row("native-4", "4 batch, native"),
    Row("gpreempt-4", "4 batch, gpreempt", native="native-4"),
    Row("channel-4", "4 batch, gpreempt without privilege: each agent acts on its own context", native="native-4"),
    Row("native-8", "8 batch, native"),
    Row("gpreempt-8", "8 batch, gpreempt", native="native-8"),
    Row("native-3", "three priorities, native: urgent"),
    Row("native-3-mid", "three priorities, native: middle", reference="mid-alone"),
    Row("gpreempt-3", "three priorities, gpreempt: urgent", native="native-3"),
    Row("gpreempt-3-mid", "three priorities, gpreempt: middle", reference="mid-alone"),
    Row("mid-alone", "the middle one alone (2 ms)", reference="mid-alone"),
    Row("list-alone", "kernel list (ResNet-50, batch 4), alone", reference="list-alone", lists=True),
    Row("list-native", "kernel list beside a training list, native", reference="list-alone", lists=True),
    Row("list-gpreempt", "kernel list beside a training list, gpreempt", reference="list-alone", native="list-native", lists=True),
    *(Row("%s-%s" % (kind, row), "PyTorch, %s: %s" % (how, title), reference=kind + "-alone", native=kind + "-native" if row == "gpreempt" else "", torch=kind)
      for kind, how in (("graph", "CUDA graph"), ("eager", "kernel by kernel"))
      for row, title in (("alone", "a transformer that serves, alone"), ("native", "beside one that is trained, native"), ("gpreempt", "beside one that is trained, gpreempt"))),
)}

SETUPS = {setup.name: setup for setup in (
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
    Setup("hints", rows=tuple("hint-%d" % lead for lead in LEADS if lead != 300) + ("hint-wrong", "hint-miss"), manager="gpreempt", batch=1),
    Setup("channel-4", rows=("channel-4",), manager="gpreempt", batch=4, ms=10, settings=(("nvidia.mechanism", "channel"),)),
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
)}

AIMED = ("batch-50", "alone", "native-1", "gpreempt-1", "batch-10", "native-4", "gpreempt-4", "mid-alone", "native-3", "gpreempt-3")
FAULTS = ("fault-daemon", "fault-urgent", "fault-batch")
STATED = ("hints", "channel-4", "native-8", "gpreempt-8", "batch-list", "list-alone", "list-native", "list-gpreempt", "mps-1")
TORCH = ("batch-torch", "torch-alone", "torch-native", "torch-gpreempt")  # only where they are asked for: each program takes long to start
# What the rows without an aim are told over is measured beside them.
PARTS = {"aims": AIMED, "faults": FAULTS, "stated": ("batch-50", "alone", "native-1", "batch-10", "native-4", *STATED), "hints": ("batch-50", "alone", "native-1", "gpreempt-1", "hints"),
         "lists": ("batch-list", "list-alone", "list-native", "list-gpreempt"), "torch": TORCH, "first": ("batch-50", "alone", "native-1")}


def kind_of(setup):
    """Of batch program: how it is called among those measured by themselves."""
    first = ROWS[setup.rows[0]]
    return "list" if first.lists else "torch" if first.torch else str(setup.ms)


def is_torch(setup):
    return setup.alone == "torch" or bool(setup.rows and ROWS[setup.rows[0]].torch)


def order(chosen, repeats):
    """[(set-up, number of the repeat)], the most wanted first: what does not fit the time is dropped from the end.

    Everything once; then the rows with an aim again; then the others again."""
    def passes(names, numbers):
        return [(SETUPS[name], number) for number in numbers for name in names if name in chosen and number < SETUPS[name].passes]
    again = range(1, repeats)
    return passes(AIMED + FAULTS + STATED + TORCH, (0,)) + passes(AIMED, again) + passes(STATED + TORCH, again)


def choose(words):
    """The names of set-ups that words (set-ups, rows or parts) ask for; ValueError with a sentence."""
    if not words:
        return set(SETUPS) - set(TORCH)
    chosen = set()
    for word in words:
        if word in PARTS:
            chosen.update(PARTS[word])
        elif word in SETUPS:
            chosen.add(word)
        elif any(word in (*setup.rows, setup.mid) for setup in SETUPS.values()):
            chosen.update(name for name, setup in SETUPS.items() if word in (*setup.rows, setup.mid))
        else:
            raise ValueError("there is no row %s; these are: %s" % (word, ", ".join([*PARTS, *SETUPS])))
    # What a batch program keeps is told over what it does by itself.
    for name in list(chosen):
        setup = SETUPS[name]
        if setup.batch and not setup.fault:
            chosen.add("batch-" + kind_of(setup))
    return chosen


def requests_of(arguments):
    return max(1, -(-arguments.requests // arguments.repeats))


def seconds_of(setup, requests, start_s=START_S):
    """How long a set-up is expected to take."""
    if is_torch(setup):
        start_s += TORCH_START_S * (1 + setup.batch)
    if setup.alone:
        return start_s / 2 + BASELINE_S
    if setup.fault:
        return start_s + 3
    period = MID_PERIOD_US if setup.name == "mid-alone" else PERIOD_US
    slow = 2.2 if setup.manager == "mps" else 1.0
    return start_s + len(setup.rows) * requests * period / 1e6 * slow
