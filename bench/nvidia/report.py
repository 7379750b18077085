#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the table, the picture and the simulator's prediction from results.json of bench/nvidia/run.

usage: bench/nvidia/report.py OUTPUT_FOLDER RESULTS.json... [--sim GPREEMPT]

Several results (parts measured in several goes on one machine) are put together; of a row that is in more than one, all repeats count. The report says which rows come from which.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import figures
import launches
import plot
import predict
import rows
import together

NOTE = (
    "Latency in µs, from the arrival of a request to its completion seen by the program; a request is one 200 µs kernel about every 20 ms unless the row says otherwise. p50, p90 and p99 are medians over the "
    "repeats, *max* is of all. *over*: above the same program alone. *batch kept*: work of all batch programs together while the urgent one was measured, over one batch program alone. *of the rest*: the same over what the requests that were served leave of the GPU, "
    "by the time they need alone: a program that is served faster leaves less. *over native*: "
    "points above (below) native time slicing%s. *saves*: context saves of the batch programs per request, as the driver counts them. *exact*: every result of every program, bit for bit."
)


def note(results: dict[str, Any]) -> str:
    """What the columns mean; whether native was measured in the same run is said where it is so."""
    return NOTE % (
        " in the same run" if not results.get("runs") else ", whichever run that was measured in: see *Runs*"
    )


KNOWN_DRIVER = "580.159.04"
PICTURES = {"nvidia-rows.svg": plot.bars, "nvidia-hints.svg": plot.hints}


def heading(results: dict[str, Any]) -> list[str]:
    about = results["about"]
    gpu = about.get("gpu", "a GPU that nvidia-smi does not name")
    lines = [
        "Measured on %s: %s; Linux %s, %s cores. %.0f s in all."
        % (about.get("date", "?"), gpu, about.get("kernel", "?"), about.get("cores", "?"), results.get("seconds", 0))
    ]
    if about.get("driver"):
        lines.append("Driver: %s." % about["driver"])
    if about.get("driver_version", KNOWN_DRIVER) != KNOWN_DRIVER:
        lines.append(
            "The driver is %s; what gpreempt knows of NVIDIA's driver was seen with %s."
            % (about["driver_version"], KNOWN_DRIVER)
        )
    if results["dry"]:
        lines.insert(0, "**Dry run with stand-ins: nothing here was measured.**")
    return lines


def runs(results: dict[str, Any]) -> list[str]:
    """Where several runs were put together: which rows come from which, and which are told over another run's."""
    lines, where = [], {}
    for number, one in enumerate(results.get("runs", ()), 1):
        lines.append(
            "Run %d, %s, %s: %s."
            % (
                number,
                one["about"].get("date", "no date"),
                one["about"].get("gpu", "no GPU named"),
                ", ".join("%s (%d)" % (row, repeats) for row, repeats in one["rows"].items()) or "no rows",
            )
        )
        for row in one["rows"]:
            where.setdefault(row, set()).add(number)
    apart = [
        "%s over %s" % (name, other)
        for name in rows.ROWS
        if name in where
        for other in dict.fromkeys((rows.ROWS[name].reference, rows.ROWS[name].native))
        if other in where and other != name and where[name] != where[other]
    ]
    if lines:
        lines.append("Rows compared with a row of other runs: %s." % ("; ".join(apart) or "none"))
    return lines


FAULTS = {
    "daemon": "kill -9 of gpreemptd, four batch programs",
    "urgent": "kill -9 of the urgent programs while the batch program is held out",
    "batch": "kill -9 of the batch program whose turn it is, of four",
}


def fault_cells(results: dict[str, Any]) -> list[list[str]]:
    cells = []
    for name, fault in results["faults"].items():
        again = fault.get("again_ms")
        cells.append(
            [
                FAULTS[name],
                "–" if again is None else "%.0f ms (two leases: %.0f)" % (again, figures.LEASES * fault["lease_ms"]),
                figures.mark(fault.get("slices_back")),
                figures.mark(fault.get("exact")),
                fault.get("note", ""),
                figures.mark(figures.fault_good(fault)),
            ]
        )
    return cells


def other_tables(results: dict[str, Any]) -> list[tuple[str, Sequence[str], list[list[str]]]]:
    """[(heading, head, cells)] of what is not a row of requests."""
    pairs, launched = together.figures(results, figures.quantile), launches.figures(results)
    return [
        one
        for one in (
            ("Programs that belong together", together.HEAD, together.cells(pairs)),
            ("What the agent costs by itself", launches.HEAD, launches.cells(launched)),
        )
        if one[2]
    ]


def fault_aims(results: dict[str, Any]) -> list[tuple[str, str, bool | None]]:
    return [
        (FAULTS[name], "batch runs again within two leases, slices are back, results exact", figures.fault_good(fault))
        for name, fault in results["faults"].items()
    ]


def other_aims(results: dict[str, Any]) -> list[tuple[str, str, bool | None]]:
    return (
        fault_aims(results)
        + together.judge(together.figures(results, figures.quantile))
        + launches.judge(launches.figures(results))
    )


def remarks(results: dict[str, Any]) -> list[str]:
    """Everything that went otherwise than planned, as sentences."""
    found = ["%s (repeat %d): %s" % (t["setup"], t["repeat"] + 1, t["text"]) for t in results["troubles"]]
    found += ["%s was not measured: %s" % (name, why) for name, why in results.get("skipped", {}).items()]
    if results["dropped"]:
        found.append("Not measured, because the time was up: %s." % "; ".join(results["dropped"]))
    if results["xid"] is None:
        found.append("The kernel's log could not be read: whether there was an Xid is not known.")
    elif results["xid"]:
        found.append("**%d Xid** in the kernel's log: %s" % (results["xid"], "; ".join(results.get("xid_lines", ()))))
    else:
        found.append("No Xid in the kernel's log.")
    return found


def all_good(found: dict[str, Any], results: dict[str, Any]) -> bool | None:
    """Whether everything aimed at was seen; None: not all of it was measured."""
    answers = [answer for _, _, answer in figures.judge(found)]
    answers += (
        [f["exact"] for f in found.values()]
        + [None if results["xid"] is None else not results["xid"]]
        + [answer for _, _, answer in other_aims(results)]
    )
    if len(results["faults"]) < 3 and "gpreempt-1" in found:
        answers.append(None)
    return figures.both(*answers)


def text(results: dict[str, Any]) -> str:
    """For the terminal."""
    found = figures.all_figures(results)
    lines = ["", *heading(results), "", *figures.text_table(figures.HEAD, figures.table_cells(found))]
    for title, head, cells in other_tables(results):
        lines += ["", title, *figures.text_table(head, cells)]
    if results["faults"]:
        lines += [
            "",
            *figures.text_table(
                ("fault", "batch runs again after", "slices back", "exact", "", "good"), fault_cells(results)
            ),
        ]
    lines += [
        "",
        *runs(results),
        *remarks(results),
        "",
        "All that was aimed at: %s" % figures.mark(all_good(found, results)).replace("*", ""),
    ]
    return "\n".join(lines)


def markdown(results: dict[str, Any], predicted: dict[str, Any]) -> str:
    found = figures.all_figures(results)
    lines = [
        "# Urgent and batch programs on an NVIDIA GPU",
        "",
        "`bench/nvidia/run` ([CONTRIBUTING.md](../../CONTRIBUTING.md)). " + " ".join(heading(results)),
        "",
        note(results),
        "",
        *figures.markdown(figures.HEAD, figures.table_cells(found)),
        "",
        "## What was aimed at",
        "",
        *figures.markdown(
            ("row", "aim", "reached"),
            [
                [rows.ROWS[row].title if row in rows.ROWS else row, words, figures.mark(answer)]
                for row, words, answer in figures.judge(found) + other_aims(results)
            ],
        ),
    ]
    for title, head, cells in other_tables(results):
        lines += ["", "## " + title, "", *figures.markdown(head, cells)]
    if plot.bars(found):
        lines += ["", "![p50 to p99 of each row](nvidia-rows.svg)"]
    if plot.hints(found):
        lines += [
            "",
            "## Hints: added latency against batch kept",
            "",
            "![added latency against batch kept, by lead time](nvidia-hints.svg)",
        ]
    if results["faults"]:
        lines += [
            "",
            "## Faults",
            "",
            *figures.markdown(
                ("fault", "batch runs again after", "slices back", "exact", "", "good"), fault_cells(results)
            ),
        ]
    if predicted:
        lines += [
            "",
            "## What the simulator says",
            "",
            "`share/devices/h200.ini` is calibrated on the first run of [docs/measurements](../measurements/h200-2026-11-15.md); none of these rows was used. Each cell: predicted / measured (error).",
            "",
            *figures.markdown(predict.HEAD, predict.cells(predicted, found)),
        ]
    if runs(results):
        lines += ["", "## Runs", "", *("- " + line for line in runs(results))]
    notes = remarks(results)
    return "\n".join(lines + ["", "## Remarks", "", *("- " + note for note in notes)]) + "\n"


def write(results: dict[str, Any], folder: str, sim: str | None = None) -> None:
    predicted = predict.run(sim) if sim else None
    with open(os.path.join(folder, "nvidia.md"), "w", encoding="utf-8") as file:
        file.write(markdown(results, predicted))
    for name, draw in PICTURES.items():
        picture = draw(figures.all_figures(results), results["dry"])
        if picture:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(picture)


def join(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Several results as one; which rows came from which is kept."""
    whole = documents[0]
    if len(documents) > 1:
        whole["runs"] = [
            {"about": one["about"], "rows": {row: len(repeats) for row, repeats in one["rows"].items()}}
            for one in documents
        ]
    for document in documents[1:]:
        for row, repeats in document["rows"].items():
            mine = whole["rows"].setdefault(row, {})
            for entry in repeats.values():
                mine[str(len(mine))] = entry
        whole["faults"] |= document["faults"]
        for kind, managers in document.get("pairs", {}).items():
            for manager, repeats in managers.items():
                mine = whole.setdefault("pairs", {}).setdefault(kind, {}).setdefault(manager, {})
                for entry in repeats.values():
                    mine[str(len(mine))] = entry
        whole["launches"] = whole.get("launches", []) + document.get("launches", [])
        for kind, rates in document["alone_rates"].items():
            whole["alone_rates"].setdefault(kind, rates)  # each entry has its own
        whole["troubles"] += document["troubles"]
        whole["dropped"] += document["dropped"]
        whole.setdefault("skipped", {}).update(document.get("skipped", {}))
        whole["seconds"] = whole.get("seconds", 0) + document.get("seconds", 0)
        whole["xid"] = None if None in (whole["xid"], document["xid"]) else whole["xid"] + document["xid"]
        whole["xid_lines"] = whole.get("xid_lines", []) + document.get("xid_lines", [])
        whole["dry"] = whole["dry"] or document["dry"]
    return whole


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("results", nargs="+")
    parser.add_argument("--sim")
    arguments = parser.parse_args()
    documents = []
    for path in arguments.results:
        try:
            with open(path, encoding="utf-8") as file:
                documents.append(json.load(file))
            if not {"about", "rows", "alone_rates", "faults"} <= set(documents[-1]):
                raise ValueError("no rows in it")
        except (OSError, ValueError, TypeError) as error:
            print(
                "report.py: %s is no results.json of bench/nvidia/run: %s"
                % (path, getattr(error, "strerror", None) or error),
                file=sys.stderr,
            )
            return 1
    results = join(documents)
    os.makedirs(arguments.output, exist_ok=True)
    write(results, arguments.output, arguments.sim)
    print(text(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
