# SPDX-License-Identifier: MIT
"""Bugs planted in a copy of the core, one at a time, each of which the explorer must find.

The product's sources stay as they are: a plant is a piece of text of one file and what stands there instead. Where a file no longer has the
text, the plant has to be written anew: that is a failure, too.
"""
import os
import subprocess
from collections.abc import Iterator

# name, file, text, instead, what the explorer says (a part of it)
PLANTS = [
    ("count", "work.c", "device->open_compute_count += more;", ";", "counts of gates"),
    (
        "heap",
        "heap.c",
        "if (!heap_before(name, &queues[queue], &queues[above]))",
        "if (place)",
        "a heap is out of order",
    ),
    (
        "taken-for-open",
        "apply.c",
        "open || lost ? GP_GATE_UNKNOWN : GP_GATE_OPEN",
        "GP_GATE_OPEN",
        "a closed gate is taken for open",
    ),
    (
        "taken-twice",
        "apply.c",
        "if (!gp_gate_moves(q->gate) || q->order_seq != seq) {",
        "if (q->order_seq != seq) {",
        "an answer is taken once",
    ),
    (
        "no-repair",
        "plan.c",
        "if (!b->device->unknown_count && !b->device->opening_all)",
        "if (!b->device->opening_all)",
        "",
    ),
    (
        "late-ageing",
        "age.c",
        "q->age_start_ns + gp_age_window_ns(device, q->age_level)",
        "q->age_start_ns + 1000 * gp_age_window_ns(device, q->age_level)",
        "stays closed",
    ),
    (
        "spin",
        "turn.c",
        "gp_device_wake(device, sched->now_ns + device->param.turn_ns - seat->turn_used_ns);",
        "gp_device_wake(device, sched->now_ns + 1);",
        "busy with itself",
    ),
    ("past", "plan.c", "device->wake_ns = GP_NEVER_NS;", ";", ""),
    (
        "changes-on-failure",
        "event.c",
        "if (completed > written ||",
        "gp_clock(sched, now_ns);\n\tif (completed > written ||",
        "changed something",
    ),
    (
        "stays-shut",
        "apply.c",
        "d->stopped = d->opening_all = d->dirty = true;",
        "d->stopped = d->dirty = true;",
        "stays closed",
    ),
    (
        "opens-the-open",
        "plan.c",
        "if (q->gate == GP_GATE_CLOSED && q->rank >= hold_rank",
        "if (q->gate != GP_GATE_OPENING && q->rank >= hold_rank",
        "",
    ),
    (
        "closes-stopped",
        "plan.c",
        "if (device->policy->gates && !device->stopped) {",
        "if (device->policy->gates) {",
        "stopped device",
    ),
    ("gang-forgotten", "gang.c", "gang->work_count -= q->has_work;", ";", "a gang's counts"),
    (
        "stale-order",
        "client.c",
        "gp_work_gate(sched, queue.index, GP_GATE_CLOSED); /* leaves every heap and list */",
        ";",
        "",
    ),
    ("given-up-unsaid", "apply.c", "apply_give_up(sched, queue, GP_WHY_TIMEOUT);", ";", "not given up"),
    ("figures", "plan.c", "device->stats.plans++;", "device->stats.plans += 2;", "the figures"),
]


def plant(root: str, folder: str, name: str, file: str, text: str, instead: str) -> tuple[str | None, str]:
    """Compiles the core with the plant; the explorer, or a sentence that says why not."""
    with open(os.path.join(root, "core", file), encoding="utf-8") as stream:
        source = stream.read()
    if source.count(text) != 1:
        return None, "core/%s has its text %d times: write the plant anew" % (file, source.count(text))
    path = os.path.join(folder, "%s-%s" % (name, file))
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(source.replace(text, instead))
    program = os.path.join(folder, "explore-" + name)
    objects = [os.path.join(folder, o) for o in os.listdir(folder) if o.endswith(".o") and o != "core-%s.o" % file[:-2]]
    done = subprocess.run(
        compiler(root) + ["-w", path, *objects, "-o", program], capture_output=True, text=True, check=False
    )
    return (program, "") if done.returncode == 0 else (None, done.stderr[-400:])


def misfits(root: str) -> Iterator[str]:
    """A sentence for each plant whose text is not exactly once in its file."""
    for name, file, text, _, _ in PLANTS:
        with open(os.path.join(root, "core", file), encoding="utf-8") as stream:
            count = stream.read().count(text)
        if count != 1:
            yield "plant %s: core/%s has its text %d times: write the plant anew" % (name, file, count)


def compiler(root: str) -> list[str]:
    return ["cc", "-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE", "-DGP_PLAN_MAX=4u", "-DGP_BATCH_MAX=4u"] + [
        "-I" + os.path.join(root, i) for i in ("core/port/hosted", "include", "")
    ]


def sources(root: str) -> Iterator[tuple[str, str]]:
    for folder in ("test/prove", "core", "core/policy"):
        for file in sorted(os.listdir(os.path.join(root, folder))):
            if file.endswith(".c"):
                yield os.path.join(root, folder, file), "%s-%s.o" % (folder.replace("/", "-"), file[:-2])


def prepare(root: str, folder: str) -> None:
    """Objects of the explorer and of the core as it is."""
    jobs = [
        subprocess.Popen(compiler(root) + ["-w", "-c", path, "-o", os.path.join(folder, name)])
        for path, name in sources(root)
    ]
    if any([job.wait() for job in jobs]):
        raise SystemExit("the explorer does not compile")


def look(root: str, folder: str, entry: tuple[str, str, str, str, str], depth_max: int = 4) -> tuple[bool, str]:
    """True, what was found; or False, why not."""
    name, file, text, instead, says = entry
    program, why = plant(root, folder, name, file, text, instead)
    if not program:
        return False, why
    for depth in range(2, depth_max + 1):
        done = subprocess.run([program, "--depth", str(depth)], capture_output=True, text=True, check=False)
        found = next((line for line in done.stdout.splitlines() if line.startswith("FAILED")), "")
        if found:
            return says in found, found
    return False, "not found in sequences of %d calls" % depth_max


if __name__ == "__main__":
    WRONG = list(misfits(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
    print("\n".join(WRONG) or "every plant fits the core")
    raise SystemExit(bool(WRONG))
