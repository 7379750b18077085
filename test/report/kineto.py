# SPDX-License-Identifier: MIT
"""The figures of a PyTorch trace by an independent computation: totals, which launch made which kernel, and the critical path
as docs/report.md describes it. Everything is in memory here; the program streams. Nothing is shared with it.
"""
import bisect
import collections
import decimal
import gzip
import json
from collections.abc import Iterator
from typing import Any

KERNEL, COPY, CALL, WAIT = "kernel", "copy", "call", "wait"
LAYERS = {
    "kernel": KERNEL,
    "Kernel": KERNEL,
    "gpu_memcpy": COPY,
    "gpu_memset": COPY,
    "Memcpy": COPY,
    "Memset": COPY,
    "cuda_runtime": CALL,
    "cuda_driver": CALL,
    "hip_runtime": CALL,
    "Runtime": CALL,
    "cuda_sync": WAIT,
}
CLOSE = 5000  # work this soon behind other work waited for it
LONG = 30000  # … or this soon, if the other work ran for three quarters of the wait


class Event:
    def __init__(self, raw, row):
        self.layer = LAYERS.get(raw.get("cat"), "range")
        self.name, self.args, self.row = raw["name"], raw.get("args", {}), row
        self.start = int(decimal.Decimal(str(raw["ts"])) * 1000)
        self.end = self.start + int(decimal.Decimal(str(raw["dur"])) * 1000)
        self.correlation = self.args.get("correlation")
        self.device, self.stream = self.args.get("device", raw.get("pid")), self.args.get("stream", raw.get("tid"))
        self.thread = (raw.get("pid"), raw.get("tid"))
        self.launch = self.before = None
        self.bytes = int(self.args["bytes"]) if "bytes" in self.args else None


def is_copy_call(name: str) -> bool:
    return any(word in name for word in ("Memcpy", "memcpy", "Memset"))


def is_sync(name: str) -> bool:
    words = ("Synchronize", "hipFree", "cudaFree", "cuMemFree")
    return (any(word in name for word in words) or is_copy_call(name)) and "sync" not in name.replace(
        "Synchronize", ""
    ).replace("Async", "sync")


def load(path: str) -> list[Event]:
    with gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") as file:
        trace = json.load(file, parse_float=decimal.Decimal)
    rows = trace["traceEvents"] if isinstance(trace, dict) else trace
    events = [Event(raw, i + 1) for i, raw in enumerate(rows) if raw.get("ph") == "X"]
    return sorted(events, key=lambda e: (e.start, -e.end))


class Run:
    def __init__(self, path):
        self.events = load(path)
        self.calls = [e for e in self.events if e.layer == CALL]
        self.work = [e for e in self.events if e.layer in (KERNEL, COPY)]
        self.first, self.last = min(e.start for e in self.events), max(e.end for e in self.events)
        self.join()
        self.nest()
        self.streams = collections.defaultdict(list)
        for work in self.work:
            self.streams[(work.device, work.stream)].append(work)

    def join(self) -> None:
        by_correlation = collections.defaultdict(list)
        for call in self.calls:
            by_correlation[call.correlation].append(call)
        for work in self.work:
            calls = [c for c in by_correlation.get(work.correlation, []) if c.start <= work.start]
            work.launch = calls[-1] if calls and work.correlation is not None else None
        self.by_correlation = by_correlation

    def nest(self) -> None:
        """Outermost calls of each thread, and the one before each."""
        open_calls, last = collections.defaultdict(list), {}
        self.outer = []
        pending = []  # outermost calls that are open, to become their thread's last when they end
        for call in self.calls:
            for old in sorted([p for p in pending if p.end <= call.start], key=lambda p: (p.end, -p.start)):
                last[old.thread] = old
                pending.remove(old)
            stack = open_calls[call.thread]
            stack[:] = [c for c in stack if c.end > call.start]
            parents = [c for c in stack if c.end >= call.end]
            if parents:
                call.top = parents[0].top
            else:
                call.top = call
                call.before = last.get(call.thread)
                self.outer.append(call)
                pending.append(call)
            stack.append(call)

    def waits(self) -> tuple[dict, dict]:
        """By call: the stream it waits for, and before when its work was submitted. By stream: events it waits for."""
        calls, streams = {}, collections.defaultdict(list)
        for wait in (e for e in self.events if e.layer == WAIT):
            call = next(
                (c for c in self.by_correlation.get(wait.correlation, []) if c.start <= wait.start < c.end), None
            )
            stream = wait.args.get("stream", -1)
            on, corr = wait.args.get("wait_on_stream", -1), wait.args.get("wait_on_cuda_event_record_corr_id", -1)
            recorded = (
                [c for c in self.by_correlation.get(corr, []) if c.start <= wait.start] if on >= 0 and corr >= 0 else []
            )
            if call and is_sync(call.name):
                if on >= 0 and corr >= 0:
                    calls[call] = ((wait.device, on), recorded[-1].start if recorded else None)
                elif stream >= 0:
                    calls[call] = ((wait.device, stream), None)
            elif stream >= 0 and recorded:
                streams[(wait.device, stream)].append(
                    (call.start if call else wait.start, (wait.device, on), recorded[-1].start)
                )
        return calls, streams

    def waited_for(self, call: Event, calls: dict) -> Event | None:
        own = is_copy_call(call.name)
        if not is_sync(call.name) and not own:
            return None
        only, before = calls.get(call, (None, None))
        found = [
            w
            for w in self.work
            if call.start < w.end <= call.end
            and (only is None or (w.device, w.stream) == only)
            and (before is None or (w.launch.start if w.launch else 0) < before)
            and (is_sync(call.name) or w.correlation == call.correlation)
        ]
        return max(found, key=lambda w: w.end, default=None)

    def origin(self, work: Event, front: Any, waits: tuple[dict, dict]) -> tuple[str, Any]:
        """What the work was ordered behind: (kind of the link, node)."""
        if not work.launch:
            return "unknown before", front
        submit = ready = work.launch.start
        link, node = "launch", work.launch.top.before
        last_submit = front.launch.start if front is not None and front.launch else 0
        if front is not None and self.ends[(work.device, work.stream)] > ready:
            ready, link, node = (
                self.ends[(work.device, work.stream)],
                "in line for",
                self.lasts[(work.device, work.stream)],
            )
        event = None
        for time, other, recorded in waits.get((work.device, work.stream), []):
            if last_submit <= time <= submit:
                done = [
                    w
                    for w in self.streams.get(other, [])
                    if w.start < work.start and w.launch and w.launch.start < recorded
                ]
                done = max(done, key=lambda w: (w.launch.start, w.end), default=None)
                event = done if done and (event is None or done.end > event.end) else event
        if event is not None and ready < event.end <= work.start:
            ready, link, node = event.end, "after an event:", event
        if work.start > ready + CLOSE:
            least = work.launch.end if link == "launch" and work.launch.end > ready else ready
            beside = [
                w
                for w in self.near(work.start)
                if (w.device, w.stream) != (work.device, work.stream)
                and least < w.end <= work.start
                and (work.start - w.end <= CLOSE or (w.end - max(w.start, least)) // 3 >= (work.start - least) // 4)
                and w.start <= work.start
                and w is not work
            ]
            beside = max(beside, key=lambda w: w.end, default=None)
            if beside is not None:
                link, node = "behind another stream:", beside
        return link, node

    def near(self, time: int) -> Iterator[Event]:
        at = bisect.bisect_right(self.ended_keys, time)
        while at and self.ended_keys[at - 1] >= time - LONG:
            at -= 1
            yield self.ended[at]

    def path(self) -> dict[tuple[str, str], int]:
        """Shares of the critical path: (kind, name) to nanoseconds."""
        calls, waits = self.waits()
        self.ended = sorted(self.work, key=lambda w: w.end)
        self.ended_keys = [w.end for w in self.ended]
        self.ends, self.lasts, fronts = {}, {}, {}
        for work in self.work:
            key = (work.device, work.stream)
            work.link, work.before = self.origin(work, fronts.get(key), waits)
            if work.link == "unknown before":
                work.before = self.lasts.get(key)
            fronts[key] = work
            if work.end >= self.ends.get(key, 0):
                self.ends[key], self.lasts[key] = work.end, work
        shares, cursor = collections.Counter(), self.last
        nodes = self.outer + self.work
        node = max(nodes, key=lambda n: n.end, default=None)

        def step(kind, name, start):
            nonlocal cursor
            if start < cursor:
                shares[(kind, "" if kind == "application" else name)] += cursor - start
                cursor = start

        if node is not None:
            step("application", "", node.end)
        while node is not None:
            before = node.before
            if node.layer == CALL:
                waited = self.waited_for(node, calls)
                if node.start < cursor and waited is not None:
                    step("returning from", node.name, waited.end)
                elif node.start < cursor:
                    step("call", node.name, node.start)
                    if before is not None:
                        step("application", "", before.end)
                before = waited if waited is not None else before
            elif node.start < cursor:
                step(node.layer, node.name, node.start)
                if node.link != "launch":
                    step(node.link, node.name, before.end if before is not None else self.first)
                else:
                    step("launched, not started:", node.name, node.launch.end)
                    step("submitting in", node.launch.name, node.launch.start)
                if before is not None:
                    step("application", "", before.end)
            node = before
        step("application", "", self.first)
        return shares
