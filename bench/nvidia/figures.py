# SPDX-License-Identifier: MIT
"""From what bench/nvidia/run found to figures, verdicts and tables. Measures nothing; reads and writes no GPU."""
import statistics

import rows

LEASES = 2
# What is aimed at, as (row, words, question). A question gets {row: figures} and answers True, False or None (not known).


def quantile(values, share):
    """The smallest value that so many are at or below."""
    ordered = sorted(values)
    return ordered[max(-int(-share * len(ordered) // 1), 1) - 1] if ordered else None


def median(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def minus(a, b):
    return None if a is None or b is None else a - b


def at_most(value, limit):
    return None if value is None else value <= limit


def both(*answers):
    if False in answers:
        return False
    return None if None in answers else True


def baseline(results, kind, repeat):
    """Units per second of a batch program by itself, of the same repeat if there is one."""
    found = results["alone_rates"].get(kind, {})
    if str(repeat) in found:
        return found[str(repeat)]["rate"]
    return median([entry["rate"] for entry in found.values()])


def kind_of(name):
    setup = next(s for s in rows.SETUPS.values() if name in (*s.rows, s.mid))
    return rows.kind_of(setup)


def row_figures(results, name):
    """The figures of one row over its repeats, without those that need other rows. None: not measured."""
    repeats = results["rows"].get(name)
    if not repeats:
        return None
    each = [{"p50": quantile(e["latency_us"], 0.5), "p90": quantile(e["latency_us"], 0.9), "p99": quantile(e["latency_us"], 0.99)} for e in repeats.values()]
    kept = []
    for repeat, entry in repeats.items():
        alone = entry.get("alone_rate") or baseline(results, kind_of(name), repeat)
        kept.append(100 * sum(entry["batch_rates"]) / alone if alone and "batch_rates" in entry else None)
    found = {key: median([e[key] for e in each]) for key in ("p50", "p90", "p99")}
    found |= {"name": name, "n": sum(e["n"] for e in repeats.values()), "repeats": len(repeats), "skipped": sum(e["skipped"] for e in repeats.values()), "late": sum(e.get("late", 0) for e in repeats.values()),
              "max": max((max(e["latency_us"]) for e in repeats.values() if e["latency_us"]), default=None), "kept": median(kept),
              "p99_each": [e["p99"] for e in each], "kept_each": kept,
              "saves": median([e.get("saves") for e in repeats.values()]), "exact": all(e["exact"] for e in repeats.values()),
              "xid": sum(len(e.get("xid") or ()) for e in repeats.values()),
              "hint_errors": sum((e.get("hints") or {}).get("hint_errors", 0) for e in repeats.values()),
              "unmanaged": any(e.get("managed") and e["managed"]["known"] < e["managed"]["programs"] for e in repeats.values())}
    return found


def all_figures(results):
    """{row: figures} of what was measured, each told over its reference."""
    found = {name: figures for name in rows.ROWS if (figures := row_figures(results, name))}
    for name, figures in found.items():
        reference = found.get(rows.ROWS[name].reference)
        native = found.get(rows.ROWS[name].native)
        for key in ("p50", "p99"):
            figures["over_" + key] = minus(figures[key], reference and reference[key])
        figures["over_native"] = minus(figures["kept"], native and native["kept"])
    return found


def get(found, row, key):
    return found[row].get(key) if row in found else None


def kept_within(found, row, points):
    """The batch keeps at least `points` more than (negative: at most so many less than) native."""
    over = get(found, row, "over_native")
    return None if over is None else over >= points


def in_order(found):
    """Three priorities: both services are better off than with native time slicing, and the more urgent one pays less."""
    pairs = [(get(found, "gpreempt-3", "p99"), get(found, "native-3", "p99")), (get(found, "gpreempt-3-mid", "p99"), get(found, "native-3-mid", "p99")),
             (get(found, "gpreempt-3", "over_p50"), get(found, "gpreempt-3-mid", "over_p50"))]
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
)


def judge(found):
    """[(row, what was aimed at, True, False or None)]. What the daemon did not know it did not reach."""
    return [(row, words, False if get(found, row, "unmanaged") else question(found)) for row, words, question in AIMS]


def fault_good(fault):
    """Whether a fault ended as it must; None: something was not seen."""
    if fault.get("trouble"):
        return False
    again = fault.get("again_ms")
    resumed = None if again is None else again <= LEASES * fault["lease_ms"]
    return both(resumed, fault.get("slices_back"), fault.get("exact"), fault.get("held_out", True))


def mark(answer):
    return {True: "yes", False: "**no**", None: "not known"}[answer]


def us(value):
    return "–" if value is None else "%.0f" % value


def signed(value):
    return "–" if value is None else "%+.0f" % value


def percent(value):
    return "–" if value is None else "%.1f %%" % value


def verdict_of(name, judged):
    answers = [(words, answer) for row, words, answer in judged if row == name]
    if not answers:
        return ""
    missed = [words for words, answer in answers if answer is False]
    unknown = [words for words, answer in answers if answer is None]
    if missed:
        return "**missed**: " + "; ".join(missed)
    return "not known: " + "; ".join(unknown) if unknown else "reached"


HEAD = ("row", "n", "p50", "p90", "p99", "max", "p50 over", "p99 over", "batch kept", "over native", "saves", "exact", "aim")


def table_cells(found):
    judged = judge(found)
    cells = []
    for name, f in found.items():
        title = rows.ROWS[name].title
        remarks = [text for text, is_so in (("%d skipped" % f["skipped"], f["skipped"]), ("%d launched late by the host" % f["late"], f["late"]), ("%d hints refused" % f["hint_errors"], f["hint_errors"]),
                                            ("**not all programs were known to the daemon**", f["unmanaged"]), ("**%d Xid**" % f["xid"], f["xid"])) if is_so]
        cells.append([title + (" (%s)" % ", ".join(remarks) if remarks else ""), "%d in %d" % (f["n"], f["repeats"]), us(f["p50"]), us(f["p90"]), us(f["p99"]),
                      us(f["max"]), signed(f["over_p50"]), signed(f["over_p99"]), percent(f["kept"]),
                      "–" if f["over_native"] is None else "%+.1f" % f["over_native"], "–" if f["saves"] is None else "%.1f" % f["saves"],
                      "yes" if f["exact"] else "**WRONG**", verdict_of(name, judged)])
    return cells


def markdown(head, cells):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(str(c) for c in row) + " |" for row in cells)]


def text_table(head, cells):
    lines = [list(head), *([str(c).replace("**", "") for c in row] for row in cells)]
    width = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return ["  ".join(cell.ljust(size) if i in (0, len(head) - 1) else cell.rjust(size) for i, (cell, size) in enumerate(zip(line, width))).rstrip() for line in lines]
