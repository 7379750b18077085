# SPDX-License-Identifier: MIT
"""A language model that answers kernel by kernel beside training, with settings of the daemon that change while both run: what differs is the settings and not the programs.

usage: within.py --bin FOLDER --out FOLDER [--rounds 3] [--seconds 8] [--mode eager] [--variant NAME=SECTION.KEY=VALUE[,...]]...

Such a program varies by a third from one start to the next, with nobody beside it. Here both programs start once. Rounds of windows follow: the server alone (the training is stopped by SIGSTOP), the
training alone (the server is), and one window for each variant, `native` (policy none: every gate open, every slice as the program has it) and `gpreempt` (as it is) among them. Settings change by a
reload, after which the daemon learns anew (--settle). Printed for each: tokens, what the training keeps, saves a second, which slices both had and how long, orders, the processor time of daemon and agents.
"""
from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

import figures
import measure
import rm
import rows
from programs import Child, Ended, Signals, Stage, Trouble, rate, xid_lines

SETTLE_S = 0.5  # after a stop: not counted
ALONE_S, TRAIN_S = 0.6, 0.3  # of --seconds: windows of the server and of the training alone
LOOK_S, STATUS_S = 0.1, 0.5
EVENTS_KEPT = 4000  # lines of a window of the last round, in within.json
NATIVE = {"policy.policy": "none"}
TICK = os.sysconf("SC_CLK_TCK")
SAID = {"slowed": "urgent work comes in pieces", "fast": "slices are short again"}  # in the daemon's log


def cpu_s(pid: int, thread: str = "") -> float:
    """Processor time of a process, or of its threads of that name."""
    total = 0
    with contextlib.suppress(OSError):
        for task in os.listdir("/proc/%d/task" % pid):
            with contextlib.suppress(OSError), open("/proc/%d/task/%s/stat" % (pid, task), encoding="utf-8") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
                if name.startswith(thread):
                    fields = rest.split()
                    total += int(fields[11]) + int(fields[12])
    return total / TICK


class Spent:
    """Processor time so far, of all that matter."""

    def __init__(self, daemon, server, training):
        self.values = {
            "daemon": cpu_s(daemon.pid),
            "server's agent": cpu_s(server.pid, "gpreempt-agent"),
            "training's agent": cpu_s(training.pid, "gpreempt-agent"),
            "server": cpu_s(server.pid),
            "training": cpu_s(training.pid),
        }

    def since(self, before: Spent, seconds: float) -> dict[str, float]:
        """Milliseconds in a second."""
        return {key: round(1000 * (value - before.values[key]) / seconds, 1) for key, value in self.values.items()}


class Theatre:
    """Both programs and the daemon, and the windows in which they are looked at."""

    def __init__(self, stage, arguments):
        self.stage, self.arguments, self.windows = stage, arguments, []
        self.daemon = stage.daemon()
        measure.require_means(stage.status())
        self.training = stage.batch(rows.BATCH, listed="torch")
        self.server = stage.urgent(
            [
                *("--seed", "1", "--phase", "within", "--mode", arguments.mode, "--requests", "1000000"),
                *("--period-us", str(rows.LLM_PERIOD_US[arguments.mode]), "--phase-seconds", "3600"),
            ],
            rows.URGENT,
            program="llm",
        )
        measure.wait_batch([self.training])
        self.server.wait_line("ready", measure.PYTHON_S)
        stage.go(self.server)

    def look(self, seconds: float) -> tuple[dict[str, collections.Counter], list[list[Any]]]:
        """What the driver says of slices, and the daemon of its state, until the time is over."""
        slices, states, end = {"training": collections.Counter(), "server": collections.Counter()}, [], time.monotonic()
        end, status_at = end + seconds, end
        while time.monotonic() < end:
            for name, child in (("training", self.training), ("server", self.server)):
                slices[name].update(rm.slices(child.pid, child.tap)[:1])
            if time.monotonic() >= status_at:
                status_at += STATUS_S
                device = ((self.stage.status() or {}).get("devices") or [{}])[0]
                states.append([device.get(key) for key in ("slowed", "stays", "switches_per_s")])
            time.sleep(LOOK_S)
        return slices, states

    def events(self) -> dict[str, Any]:
        """What the daemon still remembers of what it saw and decided: (seconds, {what and why: how often}, lines)."""
        try:
            with Signals.hold():
                done = subprocess.run(
                    [self.stage.program("gpreempt"), "events", "--json"],
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=20,
                    env=self.stage.environment(),
                )
            lines = [json.loads(line) for line in done.stdout.splitlines()] if done.returncode == 0 else []
        except (subprocess.TimeoutExpired, ValueError):
            lines = []
        times = [line["t_ns"] for line in lines if isinstance(line.get("t_ns"), int)]
        names = {self.server.pid: "server", self.training.pid: "training"}
        counted = collections.Counter(
            " ".join(str(word) for word in (names.get(line.get("pid"), ""), line.get("event"), line.get("why")) if word)
            for line in lines
        )
        return {
            "seconds": (max(times) - min(times)) / 1e9 if times else 0,
            "counted": counted,
            "lines": lines[-EVENTS_KEPT:],
        }

    def window(self, name: str, seconds: float, settings: dict[str, str], stopped: Child | None = None) -> None:
        self.stage.reload(self.daemon, settings)
        if stopped:
            stopped.process.send_signal(signal.SIGSTOP)
        time.sleep(SETTLE_S if stopped else self.arguments.settle)
        said = {key: self.daemon.output().count(words) for key, words in SAID.items()}
        spent, saves = Spent(self.daemon, self.server, self.training), measure.total_saves([self.training])
        begin = measure.monotonic_ns()
        slices, states = self.look(seconds)
        end, after = measure.monotonic_ns(), measure.total_saves([self.training])
        spent = Spent(self.daemon, self.server, self.training).since(spent, (end - begin) / 1e9)
        status, events = self.stage.status() or {}, self.events()
        if stopped:
            stopped.process.send_signal(signal.SIGCONT)
        if not (self.server.is_running() and self.training.is_running()):
            raise Trouble("a program ended; %s; %s" % (self.server.said(), self.training.said()))
        self.windows.append(
            {
                "name": name,
                "begin_ns": begin,
                "end_ns": end,
                "saves_per_s": None if None in (saves, after) else (after - saves) / ((end - begin) / 1e9),
                "slices_us": {key: dict(value) for key, value in slices.items()},
                "states": states,
                "said": {key: self.daemon.output().count(words) - said[key] for key, words in SAID.items()},
                "spent": spent,
                "events": events,
                "stats": ((status.get("devices") or [{}])[0]).get("stats") or {},
                "costs": {
                    key: ((status.get("devices") or [{}])[0]).get(key) for key in ("close_ns", "open_ns", "slice_ns")
                },
            }
        )

    def round(self, variants: dict[str, dict[str, str]], number: int) -> None:
        seconds = self.arguments.seconds
        self.window("alone", seconds * ALONE_S, NATIVE, self.training)
        self.window("training", seconds * TRAIN_S, NATIVE, self.server)
        names = list(variants)
        for name in names[number % len(names) :] + names[: number % len(names)]:  # none is always the first
            self.window(name, seconds, variants[name])

    def end(self) -> tuple[dict[str, Any], bool]:
        """The server's requests, and whether everything was exact."""
        self.server.ask_to_end()
        status = self.server.wait(90)
        document = measure.read_json(self.server)
        exact = measure.end_batch([self.training])
        return document["phases"][0], exact and document["exact"] and status == 0


def requests_in(phase: dict[str, Any], begin: int, end: int) -> tuple[list[float], list[float]]:
    """([µs to the first token], [µs between tokens], of requests that began and ended within)."""
    count = len(phase["token_ns"]) // max(1, len(phase["due_ns"]))
    first, between = [], []
    for i, (due, latency) in enumerate(zip(phase["due_ns"], phase["latency_ns"])):
        tokens = phase["token_ns"][i * count : (i + 1) * count]
        if begin <= due and due + latency + sum(tokens) <= end:
            first.append(latency / 1000)
            between += [value / 1000 for value in tokens]
    return first, between


def summed(
    windows: list[dict[str, Any]], phase: dict[str, Any], records: list[tuple[int, int]]
) -> dict[str, dict[str, Any]]:
    """{variant: figures over all its windows}, in the order of the first."""
    found = {}
    for one in windows:
        first, between = requests_in(phase, one["begin_ns"], one["end_ns"])
        into = found.setdefault(one["name"], collections.defaultdict(list))
        into["first"] += first
        into["token"] += between
        into["p50"].append(figures.quantile(between, 0.5) if between else None)
        into["rate"].append(rate(records, one["begin_ns"], one["end_ns"]))
        for key in ("saves_per_s", "said", "stats", "spent", "slices_us", "states", "costs", "events"):
            into[key].append(one[key])
    alone = figures.median([value for value in found["training"]["rate"] if value]) if "training" in found else None
    for one in found.values():
        rates = [value for value in one["rate"] if value is not None]
        one["kept"] = 100 * sum(rates) / len(rates) / alone if rates and alone else None
        one["kept_each"] = [round(100 * value / alone, 1) for value in rates] if alone else []
    return found


def line_of(name: str, one: dict[str, Any], alone: list[float]) -> str:
    def text(values, share):
        return "%.1f" % (figures.quantile(values, share) / 1000) if values else "–"

    over = (
        " (p50 %+.1f %%)" % (100 * figures.quantile(one["token"], 0.5) / figures.quantile(alone, 0.5) - 100)
        if one["token"] and alone
        else ""
    )
    slices = {
        key: dict(sum((collections.Counter(value[key]) for value in one["slices_us"]), collections.Counter()))
        for key in ("training", "server")
    }
    saves = [value for value in one["saves_per_s"] if value is not None]
    return "\n    ".join(
        (
            "%-12s first %s/%s, token p50/p90/p99 %s/%s/%s ms%s of %d, p50 each %s; training kept %s (%s)"
            % (
                name,
                text(one["first"], 0.5),
                text(one["first"], 0.99),
                *(text(one["token"], share) for share in (0.5, 0.9, 0.99)),
                over,
                len(one["token"]),
                " ".join("%.1f" % (value / 1000) for value in one["p50"] if value),
                "–" if one["kept"] is None else "%.1f %%" % one["kept"],
                " ".join(map(str, one["kept_each"])),
            ),
            "saves/s %s; slices seen (µs: looks) %s; said %s"
            % (" ".join("%.0f" % value for value in saves), json.dumps(slices), json.dumps(one["said"])),
            "slowed, stays, switches/s every %.1f s: %s"
            % (
                STATUS_S,
                " | ".join(" ".join("%s%s%s" % tuple(map(short, state)) for state in run) for run in one["states"]),
            ),
            "processor ms/s: %s" % json.dumps(one["spent"][-1]),
            "stats of the last: %s" % json.dumps({key: value for key, value in one["stats"][-1].items() if value}),
            "events of the last %.1f s: %s"
            % (
                one["events"][-1]["seconds"],
                ", ".join("%s %d" % pair for pair in one["events"][-1]["counted"].most_common(14)),
            ),
        )
    )


def short(value: Any) -> str:
    return "?" if value is None else {True: "S", False: "-"}[value] if isinstance(value, bool) else str(value)


def variants_of(words: list[str]) -> dict[str, dict[str, str]]:
    found = {"native": NATIVE, "gpreempt": {}}
    for word in words:
        name, _, settings = word.partition("=")
        pairs = [setting.partition("=") for setting in settings.split(",") if setting]
        if not name or any("." not in key or not value for key, _, value in pairs):
            raise ValueError("--variant takes NAME=SECTION.KEY=VALUE[,...], not %s" % word)
        found[name] = {key: value for key, _, value in pairs}
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0, help="of one window")
    parser.add_argument("--settle", type=float, default=2.0, help="seconds before a window that do not count")
    parser.add_argument("--mode", choices=("eager", "graph"), default="eager")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=SECTION.KEY=VALUE[,...]")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="for all of them")
    parser.add_argument("--small", action="store_true", help="sizes for a machine without a GPU")
    arguments = parser.parse_args()
    try:
        arguments.variants = variants_of(arguments.variant)
    except ValueError as error:
        parser.error(str(error))
    return arguments


def main() -> int:
    arguments = parse()
    signal.signal(signal.SIGTERM, Signals.handle)
    signal.signal(signal.SIGINT, Signals.handle)
    os.makedirs(arguments.out, exist_ok=True)
    xids, begun = xid_lines(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nvbench-within.") as folder:
        stage = Stage(folder, os.path.abspath(arguments.bin), dict(pair.split("=", 1) for pair in arguments.set))
        if arguments.small:
            for command in stage.python.values():
                command.append("--small")
        try:
            theatre = Theatre(stage, arguments)
            print("both programs are ready after %.0f s" % (time.monotonic() - begun), flush=True)
            for number in range(arguments.rounds):
                theatre.round(arguments.variants, number)
                print("round %d: %.0f s in all" % (number + 1, time.monotonic() - begun), flush=True)
            phase, exact = theatre.end()
            log = theatre.daemon.output()
        except (Trouble, Ended) as trouble:
            print("within: %s" % trouble)
            return 1
        finally:
            stage.close()
        records = theatre.training.progress.records()
    for one in theatre.windows[: -len(arguments.variants)]:
        del one["events"]["lines"]  # those of the last round are enough
    with open(os.path.join(arguments.out, "within.json"), "w", encoding="utf-8") as file:
        json.dump({"windows": theatre.windows, "phase": phase, "exact": exact, "log": log[-20000:]}, file)
    found = summed(theatre.windows, phase, records)
    for name, one in found.items():
        print(line_of(name, one, found["alone"]["token"]), flush=True)
    new = [one for one in xid_lines() or [] if one not in (xids or [])]
    print("%s; %s" % ("exact" if exact else "WRONG", "\n".join(new) if new else "no Xid"))
    return int(not exact or bool(new))


if __name__ == "__main__":
    sys.exit(main())
