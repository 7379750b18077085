# SPDX-License-Identifier: MIT
"""Runs one set-up of rows.py on a stage (programs.py) and returns what was found. Judges nothing."""
from __future__ import annotations

import json
import os
import time
from typing import Any

import rm
import rows
from programs import PATIENCE, Child, Stage, Trouble, rate, wait_for
from rows import Setup

LISTED = {"list": "train", "torch": "torch", "jax": "jax"}  # batch programs that are not one kernel over and over
PYTHON_S = PATIENCE + 50  # to start, for programs that import and compile much
STILL_S, STILL_LOOK_S, STILL_NOTES = 2.5, 0.25, 6  # without progress for so long; looked at every; notes of a set-up
SETTLE_S = 0.3  # from the last program's start to the first request
OVER = 2.5  # a phase may take so many times longer than its requests should: with MPS on an H200 a request takes about 40 ms


def monotonic_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def start_batch(stage: Stage, setup: Setup, extra: dict[str, str] | None = None, sample_us: int = 2000) -> list[Child]:
    """All batch programs, started at once, each at work."""
    batch = begin_batch(stage, setup, extra, sample_us)
    wait_batch(batch)
    return batch


def begin_batch(stage: Stage, setup: Setup, extra: dict[str, str] | None = None, sample_us: int = 2000) -> list[Child]:
    kinds = rows.kinds_of(setup) if setup.rows else [str(setup.ms)] * setup.batch
    priority = rows.BATCH if setup.manager == "gpreempt" else None
    return [stage.batch(priority, setup.ms, LISTED.get(kind), sample_us, extra) for kind in kinds]


def wait_batch(batch: list[Child]) -> None:
    for child in batch:
        child.wait_line("ready", PYTHON_S)
    for child in batch:
        wait_for("the first work of " + child.name, lambda c=child: (c.progress.last() or (0, 0))[1] > 0, 15)


def end_batch(batch: list[Child]) -> bool:
    """Whether every result was exact. A program that says nothing was not."""
    exact = True
    for child in batch:
        child.ask_to_end()
    for child in batch:
        status = child.end()
        if status not in (0, 3):
            raise Trouble("%s ended with status %d; %s" % (child.name, status, child.said()))
        exact = exact and status == 0 and child.output().rstrip().endswith("exact")
    return exact


def options_of(stage: Stage, setup: Setup, requests: int, seed: int) -> list[str]:
    """Command line of the urgent program."""
    first = rows.ROWS[setup.rows[0]]
    options = ["--seed", str(seed)]
    if first.lists:
        options += ["--list", stage.lists["infer"]]
    elif not (first.torch or first.llm or first.http):
        options += ["--us", str(first.us), *(["--pieces", str(first.pieces)] if first.pieces > 1 else [])]
    for name in setup.rows:
        row = rows.ROWS[name]
        options += [
            "--phase",
            name,
            "--requests",
            str(rows.requests_in(row, requests)),
            "--period-us",
            str(row.period_us),
            "--phase-seconds",
            "%.1f" % (rows.phase_seconds(row, requests) * OVER),
        ]
        if row.outstanding > 1:
            options += ["--outstanding", str(row.outstanding)]
        if row.torch or row.llm or row.http:
            options += ["--mode", row.torch or row.llm or row.http]
        if row.hint >= 0:
            options += ["--hint", str(row.hint), "--hint-wrong", str(row.wrong), "--hint-miss", str(row.miss)]
    return options


def program_of(setup: Setup) -> str:
    first = rows.ROWS[setup.rows[0]]
    return "torch" if first.torch else "llm" if first.llm else "http" if first.http else "hp"


def read_json(child: Child) -> dict[str, Any]:
    try:
        with open(child.json, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Trouble("%s left no result (%s); %s" % (child.name, error, child.said())) from None


def tasks_of(pid: int) -> list[dict[str, str]]:
    """What each thread of a process waits for, as far as the kernel says."""

    def said(task, name):
        try:
            with open("/proc/%d/task/%s/%s" % (pid, task, name), encoding="ascii", errors="replace") as file:
                return file.read().strip()
        except OSError:
            return ""

    try:
        return [
            {"thread": task, **{name: said(task, name)[:200] for name in ("comm", "wchan", "syscall", "stat")}}
            for task in sorted(os.listdir("/proc/%d/task" % pid), key=int)
        ]
    except OSError:
        return []


class Still:
    """Notes of batch programs that make no progress for long while an urgent program is measured: what the daemon and the kernel say of them then. A median would hide them."""

    def __init__(self, batch, status):
        self.batch, self.status, self.found = batch, status, []
        self.last = [(None, time.monotonic())] * len(batch)
        self.next = time.monotonic() + STILL_LOOK_S

    def look(self) -> None:
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + STILL_LOOK_S
        for i, child in enumerate(self.batch):
            units = (child.progress.last() or (0, 0))[1]
            if units != self.last[i][0]:
                self.last[i] = (units, now)
            elif now - self.last[i][1] >= STILL_S and len(self.found) < STILL_NOTES:
                self.last[i] = (units, now)
                self.found.append(
                    {
                        "program": child.name,
                        "units": units,
                        "saves": rm.saves(child.pid, child.tap),
                        "slices_us": rm.slices(child.pid, child.tap),
                        "tasks": tasks_of(child.pid),
                        "status": self.status(),
                    }
                )


def finish_urgent(
    child: Child, seconds: float, batch: list[Child], still: Still | None = None
) -> tuple[dict[str, Any], list[int | None]]:
    """Its result, and how often the batch programs had been saved when each phase began, and at the end."""
    saves, end = [], time.monotonic() + seconds
    while child.is_running() and time.monotonic() < end:
        if still:
            still.look()
        if sum(line.startswith("phase ") for line in child.output().splitlines()) > len(saves):
            saves.append(total_saves(batch))
        time.sleep(0.02)
    saves.append(total_saves(batch))
    status = child.wait(1)
    if status not in (0, 3):
        raise Trouble("%s ended with status %d; %s" % (child.name, status, child.said()))
    return read_json(child), saves


def wait_noted(batch: list[Child], moment: int) -> None:
    """Until each batch program has noted its progress beyond a moment: it does so every few milliseconds, if it is not kept from it."""
    for child in batch:
        wait_for(
            "a note of %s" % child.name,
            lambda c=child: (c.progress.last() or (0, 0))[0] >= moment or not c.is_running(),
            10,
        )


def entry_of(phase: dict[str, Any], exact: bool, batch: list[Child]) -> dict[str, Any]:
    """What is kept of a phase."""
    begin, end = phase["begin_ns"], phase["end_ns"]
    wait_noted(batch, end)
    rates = [rate(child.progress.records(), begin, end) for child in batch]
    entry = {
        "n": len(phase["latency_ns"]),
        "skipped": phase["skipped"],
        "late": phase.get("late", 0),
        "late_max_us": phase.get("late_max_ns", 0) / 1e3,
        "launch_max_us": phase.get("launch_max_ns", 0) / 1e3,
        "seconds": (end - begin) / 1e9,
        "exact": exact,
        "latency_us": [round(value / 1000, 1) for value in phase["latency_ns"]],
    }
    if batch:
        if None in rates:
            raise Trouble("a batch program did not note its progress during %s" % phase["name"])
        entry["batch_rates"] = rates
    for key in ("request_gpu_us", "lead_us", "model"):
        if key in phase:
            entry[key] = phase[key]
    if phase["hints"] or phase["hints_missed"]:
        entry["hints"] = {
            key: phase[key] for key in ("hints", "hints_wrong", "hints_missed", "hint_errors", "hint_error")
        }
    return entry


def managed_of(status: dict[str, Any] | None, children: list[Child]) -> dict[str, Any]:
    """How many of our programs the daemon has, and how it acts on them."""
    pids = {child.pid for child in children}
    clients = [c for c in (status or {}).get("clients", ()) if c.get("pid") in pids]
    device = ((status or {}).get("devices") or [{}])[0]
    return {
        "programs": len(pids),
        "known": len(clients),
        "mechanisms": sorted({str(c.get("mechanism")) for c in clients}),
        "device": {
            key: device.get(key)
            for key in ("name", "backend", "driver", "mechanism", "self_switching")
            if key in device
        },
        "counters": ((status or {}).get("daemon") or {}).get("counters"),
        "stats": device.get("stats"),
    }


def require_means(status: dict[str, Any] | None) -> None:
    """Trouble, with the daemon's reasons, where it can only watch: such a row would be native time slicing under another name."""
    for device in (status or {}).get("devices", ()):
        if device.get("mechanism") == "none":
            why = [
                str(finding.get("text")) for finding in device.get("findings", ()) if not finding.get("usable", True)
            ]
            raise Trouble("gpreemptd can do nothing with this GPU: %s" % ("; ".join(why) or "it does not say why"))


def total_saves(batch: list[Child]) -> int | None:
    counts = [rm.saves(child.pid, child.tap) for child in batch]
    return None if None in counts or not counts else sum(counts)


def mid_entry(child: Child, window: tuple[int, int], exact: bool) -> dict[str, Any]:
    """The middle program's requests that arrived while the urgent one was measured."""
    child.end()
    document = read_json(child)
    phase = document["phases"][0]
    kept = [
        (due, latency) for due, latency in zip(phase["due_ns"], phase["latency_ns"]) if window[0] <= due < window[1]
    ]
    return {
        "n": len(kept),
        "skipped": phase["skipped"],
        "seconds": (window[1] - window[0]) / 1e9,
        "exact": exact and document["exact"],
        "latency_us": [round(latency / 1000, 1) for _, latency in kept],
    }


def start_all(stage: Stage, setup: Setup, requests: int, seed: int) -> tuple[list[Child], Child | None, Child]:
    """The batch programs, the middle one if there is one, and the urgent one; each is ready."""
    managed = setup.manager == "gpreempt"
    extra = stage.mps_start() if setup.manager == "mps" else {}
    program, priority = program_of(setup), rows.URGENT if managed else None
    batch = begin_batch(stage, setup, extra | ({"CUDA_MPS_CLIENT_PRIORITY": "1"} if extra else {}))
    # Programs that take ten seconds to start do so beside each other.
    early = (
        stage.urgent(options_of(stage, setup, requests, seed), priority, extra=extra, program=program)
        if program == "llm"
        else None
    )
    wait_batch(batch)
    mid = None
    if setup.mid:
        mid = stage.urgent(
            [
                "--us",
                str(rows.MID_KERNEL_US),
                "--period-us",
                str(rows.MID_PERIOD_US),
                "--requests",
                "0",
                "--seed",
                str(seed + 1000),
            ],
            rows.MID if managed else None,
            "mid",
        )
        mid.wait_line("ready")
        stage.go(mid)
    urgent = early or stage.urgent(options_of(stage, setup, requests, seed), priority, extra=extra, program=program)
    urgent.wait_line("ready", PATIENCE if program == "hp" else PYTHON_S)
    return batch, mid, urgent


def add_tokens(phases: list[dict[str, Any]], found: dict[str, Any]) -> None:
    """Rows of the times between tokens, beside those to the first."""
    for phase in phases:
        if "token_ns" in phase:
            entry = dict(found[phase["name"]])
            entry["latency_us"] = [round(value / 1000, 1) for value in phase["token_ns"]]
            entry["n"] = len(phase["token_ns"])
            entry["requests"] = len(phase["latency_ns"])
            found[phase["name"] + rows.TOKEN] = entry


def run_rows(stage: Stage, setup: Setup, requests: int, seed: int) -> dict[str, Any]:
    """{row: entry} of a set-up with requests."""
    managed = setup.manager == "gpreempt"
    if managed:
        stage.daemon(setup.settings)
        require_means(stage.status())
    batch, mid, urgent = start_all(stage, setup, requests, seed)
    status = stage.status() if managed else None
    time.sleep(SETTLE_S)
    stage.go(urgent)
    still = Still(batch, stage.status if managed else lambda: None)
    document, saves = finish_urgent(urgent, rows.seconds_of(setup, requests) * OVER + 15, batch, still)
    known = managed_of(status, [*batch, urgent, *([mid] if mid else [])]) if managed else None
    if managed:
        known |= {
            key: value for key, value in managed_of(stage.status(), batch).items() if key in ("counters", "stats")
        }
    phases = document["phases"]
    found = {phase["name"]: entry_of(phase, document["exact"], batch) for phase in phases}
    for phase, before, after in zip(phases, saves, saves[1:]):
        entry = found[phase["name"]]
        if before is not None and after is not None and entry["n"] and len(saves) == len(phases) + 1:
            entry["saves"] = (after - before) / entry["n"]
    add_tokens(phases, found)
    if setup.mid:
        found[setup.mid] = mid_entry(mid, (phases[0]["begin_ns"], phases[-1]["end_ns"]), document["exact"])
    exact = end_batch(batch)
    for name, entry in found.items():
        entry["exact"] = entry["exact"] and exact
        if setup.kinds:
            entry["batch_kinds"] = list(setup.kinds)
        if known:
            entry["managed"] = known
        if still.found:
            entry["still"] = still.found
    missing = [name for name in setup.rows if name not in found]
    if missing:
        raise Trouble("%s measured no %s" % (urgent.name, ", ".join(missing)))
    return found


def run_alone(stage: Stage, setup: Setup) -> dict[str, Any]:
    """Units per second of one batch program by itself, and whether it was exact."""
    listed = LISTED.get(setup.alone)
    child = stage.batch(None, 50 if listed else int(setup.alone), listed)
    child.wait_line("ready", PYTHON_S)
    wait_for("the first work of " + child.name, lambda: (child.progress.last() or (0, 0))[1] > 0, 15)
    slices = rm.slices(child.pid, child.tap)
    begin = monotonic_ns()
    time.sleep(stage.baseline_s)
    end = monotonic_ns()
    wait_noted([child], end)
    exact = end_batch([child])
    found = rate(child.progress.records(), begin, end)
    if not found:
        raise Trouble("%s made no progress" % child.name)
    return {"rate": found, "exact": exact, "slices_us": slices}
