# SPDX-License-Identifier: MIT
"""A case of test/e2e/sched: what status, top, metrics and record say, against the node's own counters."""
import glob
import json
import os
import re
import signal
from typing import Any

from sched_cases import ENDLESS, FAST, Stage, case, end_exact, managed, must
from stage import Program, wait_for


def steady(stage: Stage) -> tuple[dict[str, Any], dict[str, Any]]:
    """Status and node at one moment: nothing was ordered while both were read."""

    def asked():
        before, node, after = stage.status(), stage.node(), stage.status()
        same = before["devices"][0]["stats"]["transactions"] == after["devices"][0]["stats"]["transactions"]
        moving = any(q["gate"] in ("opening", "closing") for c in after["clients"] for q in c["queues"])
        return (after, node) if same and not moving else None

    return wait_for("a moment without orders", asked)


@case
def numbers(build: str) -> None:
    """What status, top, metrics and record say agrees with the node's own counters: queues, packets, gate changes against halts."""
    with Stage(build, dilation=FAST) as stage:
        stage.daemon()
        train = stage.train(["-p", "20"])
        train.wait_line("ready")
        managed(stage, train)
        numbers_alone(stage, train)
        record = stage.start([stage.gpreempt(), "record", "-o", stage.file("record.jsonl")], "record")
        wait_for("record has begun", lambda: record_path(stage) and os.path.getsize(record_path(stage)))
        serve = stage.serve(["-p", "80"], closed=0.3, seconds=ENDLESS)
        managed(stage, train, serve)
        serve.wait_line("ready")
        numbers_top(stage)
        before, node_before = steady(stage)
        for program in (train, serve):
            client = stage.client(program, before)
            mine = {q["id"] for q in node_before["queues"] if q["pid"] == client["pid"]}
            must(
                {q["queue_id"] for q in client["queues"]} == mine,
                "queues of %s: %s, %s" % (program.name, client["queues"], mine),
            )
        wait_for(
            "thirty more transactions",
            lambda: stage.status()["devices"][0]["stats"]["transactions"]
            >= before["devices"][0]["stats"]["transactions"] + 30,
        )
        after, node_after = steady(stage)
        orders = after["devices"][0]["stats"]["transactions"] - before["devices"][0]["stats"]["transactions"]
        halts = node_after["gpus"][0]["halts"] - node_before["gpus"][0]["halts"]
        must(orders == halts, "%d transactions, %d halts of the device" % (orders, halts))
        numbers_transactions(stage)
        end_exact(serve)
        numbers_record(stage, record, train)
        end_exact(train)
        numbers_quiet(stage)


def record_path(stage: Stage) -> str | None:
    """It has its name at the end, and another one until then; None before it began."""
    return next(iter(glob.glob(stage.file("record.jsonl") + "*")), None)


def numbers_alone(stage: Stage, train: Program) -> None:
    """A program that is alone and always has work has the whole device, by the daemon's own clock, and never more."""

    def look():
        status = stage.status()
        client = stage.client(train, status)
        return status["daemon"]["uptime_real_ns"], client

    begin_ns, before = look()
    wait_for("a second of work", lambda: look()[0] > begin_ns + 1000000000)
    end_ns, after = look()
    passed_ns = (end_ns - begin_ns) / stage.dilation
    share = (after["compute_ns"] - before["compute_ns"]) / passed_ns
    must(0.8 <= share <= 1.001, "a program that always has work got %.3f of the device" % share)
    must(after["wait_ns"] == before["wait_ns"], "a program that is alone waited: %s, %s" % (before, after))
    must(after["gpu_count"] == 1, "one GPU, not %s" % after["gpu_count"])


def record_lines(stage: Stage) -> list[dict[str, Any]]:
    with open(record_path(stage), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.endswith("}\n")]
    must(not any(e.get("event") == "lost" for e in lines), "the record lost events")
    return lines


def numbers_transactions(stage: Stage) -> None:
    """Gates of one process that changed at one moment are one transaction: so counted, the record has as many as the status, which has as many
    as the node halted."""
    status, _ = steady(stage)
    wanted = status["devices"][0]["stats"]["transactions"]

    def counted():
        first, *events = record_lines(stage)
        changes = {(e["t_ns"], e["pid"], e["event"]) for e in events if e.get("event") in ("closed", "opened")}
        return first["status"]["devices"][0]["stats"]["transactions"] + len(changes)

    # It goes on while we read: as many at some moment, and never more than there are by then.
    wait_for("%d transactions in the record, not %d" % (wanted, counted()), lambda: counted() >= wanted)
    told = counted()
    now = stage.status()["devices"][0]["stats"]["transactions"]
    must(told <= now, "%d transactions in the record, %d in the status" % (told, now))


def numbers_top(stage: Stage) -> None:
    """Two looks of top, within two of ours: its rates are of changes that the node saw, and each program's are parts of the device's."""
    before = stage.node()["gpus"][0]["halts"]
    lines = [json.loads(line) for line in stage.ask("top", "-b", "-n", "2", "-d", "20", "--json").stdout.splitlines()]
    halts = stage.node()["gpus"][0]["halts"] - before
    device, passed = lines[1]["devices"][0], lines[1]["uptime_real_ns"] - lines[0]["uptime_real_ns"]
    orders = round(device["transactions_per_1000s"] * passed / 1e12)
    must(
        0 < orders <= halts,
        "top: %d transactions in %d ns, the node halted %d times meanwhile" % (orders, passed, halts),
    )
    for name in ("preemptions_per_1000s", "inversions_per_1000s"):
        parts = sum(c[name] or 0 for c in lines[1]["clients"])
        must(abs(parts - device[name]) <= len(lines[1]["clients"]), "%s: %s" % (name, lines[1]))


def numbers_record(stage: Stage, record: Program, train: Program) -> None:
    """The record, begun before the first of them, has each close of the trainer that the status counts."""
    status, _ = steady(stage)
    wanted, pid = sum(q["closes"] for q in stage.client(train, status)["queues"]), train.pid()

    def closes():
        return sum(e.get("event") == "closed" and e.get("pid") == pid for e in record_lines(stage))

    wait_for("%d closes in the record, not %d" % (wanted, closes()), lambda: closes() == wanted)
    record.signal(signal.SIGINT)
    must(record.wait() == 0 and wanted, "record ended with %d; %s" % (record.process.returncode, record.tail()))


def numbers_quiet(stage: Stage) -> None:
    """Packets, where nothing moves any more: a program that did its work and waits."""
    serve = stage.serve(["-p", "80"], closed=100000, requests=2)
    serve.wait_line("ready")
    managed(stage, serve)

    def agree():
        client = stage.client(serve)
        mine = {q["id"]: q for q in stage.queues(serve)}
        return all(q["completed"] == mine[q["queue_id"]]["read"] for q in client["queues"])

    wait_for("completed is what the node read: %s, %s" % (stage.client(serve), stage.queues(serve)), agree)
    metrics = stage.ask("metrics").stdout
    status = stage.status()
    for name, value in (("preemptions", status["devices"][0]["stats"]["preemptions"]),):
        found = re.search(r"^gpreempt_%s_total\{[^}]*\} (\d+)$" % name, metrics, re.MULTILINE)
        must(found and int(found.group(1)) == value, "%s: %d, metrics: %s" % (name, value, metrics))
    serve.kill()
