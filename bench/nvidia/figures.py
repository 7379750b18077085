# SPDX-License-Identifier: MIT
"""From what bench/nvidia/run found to figures, verdicts and tables. Measures nothing; reads and writes no GPU."""
from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import rows

LEASES = 2
# What is aimed at, as (row, words, question). A question gets {row: figures} and answers True, False or None (not known).


def quantile(values: Iterable[float], share: float) -> float | None:
    """The smallest value that so many are at or below."""
    ordered = sorted(values)
    return ordered[max(-int(-share * len(ordered) // 1), 1) - 1] if ordered else None


def median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def at_most(value: float | None, limit: float) -> bool | None:
    return None if value is None else value <= limit


def both(*answers: bool | None) -> bool | None:
    if False in answers:
        return False
    return None if None in answers else True


def baseline(results: dict[str, Any], kind: str, repeat: int | str) -> float | None:
    """Units per second of a batch program by itself, of the same repeat if there is one."""
    found = results["alone_rates"].get(kind, {})
    if str(repeat) in found:
        return found[str(repeat)]["rate"]
    return median([entry["rate"] for entry in found.values()])


def kind_of(name: str) -> str:
    setup = next(s for s in rows.SETUPS.values() if base_of(name) in (*s.rows, s.mid))
    return rows.kind_of(setup)


def kept_of(results: dict[str, Any], name: str, repeat: int | str, entry: dict[str, Any]) -> float | None:
    """Percent of what one batch program does alone; of different programs each counts by itself."""
    if "batch_rates" not in entry:
        return None
    if "batch_kinds" in entry:
        alone = entry.get("alone_rate_each") or [baseline(results, kind, repeat) for kind in entry["batch_kinds"]]
        return None if None in alone else 100 * sum(rate / one for rate, one in zip(entry["batch_rates"], alone))
    alone = entry.get("alone_rate") or baseline(results, kind_of(name), repeat)
    return 100 * sum(entry["batch_rates"]) / alone if alone else None


def busy_of(results: dict[str, Any], found: dict[str, Any], name: str) -> float | None:
    """Percent of the time for which the GPU is needed by the requests that were served, the middle program's too; None: not known."""
    total, setup = 0, next(s for s in rows.SETUPS.values() if base_of(name) in (*s.rows, s.mid))
    for row in (base_of(name), *([setup.mid] if setup.mid and name != setup.mid else [])):
        reference = found.get(rows.ROWS[row].reference)
        if row not in found or not reference:
            return None
        # A request that is kernels and nothing else needs what it takes alone; where the host computes, too, the program must say.
        is_kernels = not (rows.ROWS[row].http or rows.ROWS[row].llm or rows.ROWS[row].torch == "eager")
        need_us = median([e.get("request_gpu_us") for e in results["rows"][reference["name"]].values()]) or (
            reference["p50"] if is_kernels else None
        )
        if need_us is None:
            return None
        total += 100 * median(
            [e["n"] * need_us / (e["seconds"] * 1e6) for e in results["rows"][row].values() if e["seconds"]]
        )
    return total


def base_of(name: str) -> str:
    """The row of the requests, for one of the times between tokens."""
    return name[: -len(rows.TOKEN)] if rows.ROWS[name].token else name


def row_figures(results: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The figures of one row over its repeats, without those that need other rows. None: not measured."""
    repeats = results["rows"].get(name)
    if not repeats:
        return None
    each = [
        {
            "p50": quantile(e["latency_us"], 0.5),
            "p90": quantile(e["latency_us"], 0.9),
            "p99": quantile(e["latency_us"], 0.99),
        }
        for e in repeats.values()
    ]
    kept = []
    for repeat, entry in repeats.items():
        kept.append(kept_of(results, name, repeat, entry))
    found = {key: median([e[key] for e in each]) for key in ("p50", "p90", "p99")}
    found |= {
        "name": name,
        "n": sum(e["n"] for e in repeats.values()),
        "repeats": len(repeats),
        "skipped": sum(e["skipped"] for e in repeats.values()),
        "late": sum(e.get("late", 0) for e in repeats.values()),
        "max": max((max(e["latency_us"]) for e in repeats.values() if e["latency_us"]), default=None),
        "kept": median(kept),
        "p99_each": [e["p99"] for e in each],
        "kept_each": kept,
        "saves": median([e.get("saves") for e in repeats.values()]),
        "exact": all(e["exact"] for e in repeats.values()),
        "xid": sum(len(e.get("xid") or ()) for e in repeats.values()),
        "hint_errors": sum((e.get("hints") or {}).get("hint_errors", 0) for e in repeats.values()),
        "served": 100
        * sum(e["n"] for e in repeats.values())
        / max(1, sum(e["n"] + e["skipped"] for e in repeats.values())),
        "lead": median([e.get("lead_us") for e in repeats.values()]),
        "still": sum(1 for e in repeats.values() if e.get("still")),
        "models": sorted({e["model"] for e in repeats.values() if "model" in e}),
        "unmanaged": any(
            e.get("managed") and e["managed"]["known"] < e["managed"]["programs"] for e in repeats.values()
        ),
    }
    return found


def all_figures(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """{row: figures} of what was measured, each told over its reference."""
    found = {name: figures for name in rows.ROWS if (figures := row_figures(results, name))}
    for name, figures in found.items():
        reference = found.get(rows.ROWS[name].reference)
        native = found.get(rows.ROWS[name].native)
        for key in ("p50", "p99"):
            figures["over_" + key] = minus(figures[key], reference and reference[key])
        figures["over_native"] = minus(figures["kept"], native and native["kept"])
    for name, figures in found.items():
        busy = None if figures["kept"] is None else busy_of(results, found, name)
        figures["rest"] = 100 * figures["kept"] / (100 - busy) if busy is not None and busy < 99 else None
    return found


def get(found: dict[str, Any], row: str, key: str) -> Any:
    return found[row].get(key) if row in found else None


def kept_within(found: dict[str, Any], row: str, points: float) -> bool | None:
    """The batch keeps at least `points` more than (negative: at most so many less than) native."""
    over = get(found, row, "over_native")
    return None if over is None else over >= points


def in_order(found: dict[str, Any]) -> bool | None:
    """Three priorities: both services are better off than with native time slicing, and the more urgent one pays less."""
    pairs = [
        (get(found, "gpreempt-3", "p99"), get(found, "native-3", "p99")),
        (get(found, "gpreempt-3-mid", "p99"), get(found, "native-3-mid", "p99")),
        (get(found, "gpreempt-3", "over_p99"), get(found, "gpreempt-3-mid", "over_p99")),
    ]
    return both(*(None if None in pair else pair[0] < pair[1] for pair in pairs))


AIMS = (
    ("gpreempt-1", "p99 at most 250 µs above alone", lambda f: at_most(get(f, "gpreempt-1", "over_p99"), 250)),
    ("gpreempt-1", "p50 at most 215 µs above alone", lambda f: at_most(get(f, "gpreempt-1", "over_p50"), 215)),
    ("gpreempt-1", "batch within 1 point of native", lambda f: kept_within(f, "gpreempt-1", -1)),
    ("hint-300", "p99 at most 20 µs above alone", lambda f: at_most(get(f, "hint-300", "over_p99"), 20)),
    ("hint-300", "batch within 1.5 points of native", lambda f: kept_within(f, "hint-300", -1.5)),
    ("gpreempt-4", "p99 at most 300 µs above alone", lambda f: at_most(get(f, "gpreempt-4", "over_p99"), 300)),
    ("gpreempt-4", "batch together at least 5 points above native", lambda f: kept_within(f, "gpreempt-4", 5)),
    ("gpreempt-3", "three priorities in order", in_order),
    ("gpreempt-3", "the lowest at most 5 points below native", lambda f: kept_within(f, "gpreempt-3", -5)),
)


def percent_over(found: dict[str, Any], row: str, key: str, limit: float) -> bool | None:
    """A figure is at most so many percent above the same alone."""
    value, reference = get(found, row, key), get(found, rows.ROWS[row].reference, key)
    return None if value is None or not reference else value <= reference * (1 + limit / 100)


def at_least(value: float | None, limit: float) -> bool | None:
    return None if value is None else value >= limit


def no_worse(found: dict[str, Any], row: str, key: str, sign: int = 1) -> bool | None:
    """Than natively; sign -1: where more is better."""
    value, native = get(found, row, key), get(found, rows.ROWS[row].native, key)
    return None if value is None or native is None else sign * value <= sign * native


# Of rows that are measured only where they are asked for: judged only then.
NAMED_AIMS = (
    ("long-gpreempt", "p99 at most 300 µs above alone", lambda f: at_most(get(f, "long-gpreempt", "over_p99"), 300)),
    ("load-gpreempt", "p99 at most 1200 µs above alone", lambda f: at_most(get(f, "load-gpreempt", "over_p99"), 1200)),
    ("load-gpreempt", "batch at least 70 % of the rest", lambda f: at_least(get(f, "load-gpreempt", "rest"), 70)),
    (
        "pieces-gpreempt",
        "p99 at most 300 µs above alone",
        lambda f: at_most(get(f, "pieces-gpreempt", "over_p99"), 300),
    ),
    (
        "rate-latency",
        "all requests served, p50 at most 60 µs above alone",
        lambda f: both(
            at_least(get(f, "rate-latency", "served"), 100), at_most(get(f, "rate-latency", "over_p50"), 60)
        ),
    ),
    (
        "rate-latency",
        # The urgent program runs during aged turns, too: the GPU switches between open programs by itself.
        "batch has its aged turns, at least 0.4 % of the rest (5 ms a second are 0.5 %)",
        lambda f: at_least(get(f, "rate-latency", "rest"), 0.4),
    ),
    (
        "rate-balanced",
        "all requests served, p50 at most 250 µs above alone",
        lambda f: both(
            at_least(get(f, "rate-balanced", "served"), 100), at_most(get(f, "rate-balanced", "over_p50"), 250)
        ),
    ),
    ("rate-balanced", "batch at least 20 %", lambda f: at_least(get(f, "rate-balanced", "kept"), 20)),
    (
        "llm-graph-gpreempt",
        "p50 and p99 at most 5 % above alone",
        lambda f: both(*(percent_over(f, "llm-graph-gpreempt", key, 5) for key in ("p50", "p99"))),
    ),
    (
        "llm-graph-gpreempt",
        "training at least 95 % of the rest",
        lambda f: at_least(get(f, "llm-graph-gpreempt", "rest"), 95),
    ),
    (
        "llm-graph-gpreempt-token",
        "p50 and p99 at most 2 % above alone",
        lambda f: both(*(percent_over(f, "llm-graph-gpreempt-token", key, 2) for key in ("p50", "p99"))),
    ),
    (
        "llm-eager-gpreempt-token",
        "p99 at most native's, p50 at most 10 % above alone",
        lambda f: both(
            no_worse(f, "llm-eager-gpreempt-token", "p99"), percent_over(f, "llm-eager-gpreempt-token", "p50", 10)
        ),
    ),
    ("llm-eager-gpreempt", "training at least native's", lambda f: no_worse(f, "llm-eager-gpreempt", "kept", -1)),
)


def judge(found: dict[str, dict[str, Any]]) -> list[tuple[str, str, bool | None]]:
    """[(row, what was aimed at, True, False or None)]. What the daemon did not know it did not reach."""
    named = [aim for aim in NAMED_AIMS if aim[0] in found]
    wanted = AIMS if not named or any(row in found for row, _, _ in AIMS) else ()
    return [
        (row, words, False if get(found, row, "unmanaged") else question(found))
        for row, words, question in (*wanted, *named)
    ]


def fault_good(fault: dict[str, Any]) -> bool | None:
    """Whether a fault ended as it must; None: something was not seen."""
    if fault.get("trouble"):
        return False
    again = fault.get("again_ms")
    resumed = None if again is None else again <= LEASES * fault["lease_ms"]
    return both(resumed, fault.get("slices_back"), fault.get("exact"), fault.get("held_out", True))


def mark(answer: bool | None) -> str:
    return {True: "yes", False: "**no**", None: "not known"}[answer]


def us(value: float | None) -> str:
    return "–" if value is None else "%.0f" % value


def signed(value: float | None) -> str:
    return "–" if value is None else "%+.0f" % value


def percent(value: float | None) -> str:
    return "–" if value is None else "%.1f %%" % value


def verdict_of(name: str, judged: list[tuple[str, str, bool | None]]) -> str:
    answers = [(words, answer) for row, words, answer in judged if row == name]
    if not answers:
        return ""
    missed = [words for words, answer in answers if answer is False]
    unknown = [words for words, answer in answers if answer is None]
    if missed:
        return "**missed**: " + "; ".join(missed)
    return "not known: " + "; ".join(unknown) if unknown else "reached"


HEAD = (
    "row",
    "n",
    "p50",
    "p90",
    "p99",
    "max",
    "p50 over",
    "p99 over",
    "batch kept",
    "of the rest",
    "over native",
    "saves",
    "exact",
    "aim",
)


def table_cells(found: dict[str, Any]) -> list[list[str]]:
    judged = judge(found)
    cells = []
    for name, f in found.items():
        title = rows.ROWS[name].title
        remarks = [
            text
            for text, is_so in (
                ("%d skipped" % f["skipped"], f["skipped"]),
                ("%.0f µs from the hint to the first kernel" % (f["lead"] or 0), f["lead"]),
                (", ".join(f["models"]), f["models"]),
                ("%d launched late by the host" % f["late"], f["late"]),
                ("%d hints refused" % f["hint_errors"], f["hint_errors"]),
                ("**a batch program stood still in %d of %d**" % (f["still"], f["repeats"]), f["still"]),
                ("**not all programs were known to the daemon**", f["unmanaged"]),
                ("**%d Xid**" % f["xid"], f["xid"]),
            )
            if is_so
        ]
        cells.append(
            [
                title + (" (%s)" % ", ".join(remarks) if remarks else ""),
                "%d in %d" % (f["n"], f["repeats"]),
                us(f["p50"]),
                us(f["p90"]),
                us(f["p99"]),
                us(f["max"]),
                signed(f["over_p50"]),
                signed(f["over_p99"]),
                percent(f["kept"]),
                percent(f["rest"]),
                "–" if f["over_native"] is None else "%+.1f" % f["over_native"],
                "–" if f["saves"] is None else "%.1f" % f["saves"],
                "yes" if f["exact"] else "**WRONG**",
                verdict_of(name, judged),
            ]
        )
    return cells


def markdown(head: Sequence[str], cells: Sequence[Sequence[Any]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(str(c) for c in row) + " |" for row in cells),
    ]


def text_table(head: Sequence[str], cells: Sequence[Sequence[Any]]) -> list[str]:
    lines = [list(head), *([str(c).replace("**", "") for c in row] for row in cells)]
    width = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return [
        "  ".join(
            cell.ljust(size) if i in (0, len(head) - 1) else cell.rjust(size)
            for i, (cell, size) in enumerate(zip(line, width))
        ).rstrip()
        for line in lines
    ]
