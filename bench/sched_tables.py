# SPDX-License-Identifier: MIT
"""Turns the figures of bench/sched into docs/results/sched.md and seed003.md. Measures nothing."""
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

PREEMPTING = ("debugger", "self", "update")  # mechanisms that stop what runs
SAVE_BYTES = {"mi210": 104 * 4 * 4 * 64 * 128 * 4}  # 416 workgroups of four waves, 128 registers of 64 lanes, 4 bytes
SAVE_RATE = {"mi210": 1.6e12}  # share/devices/mi210.ini: save_bandwidth, assumed: all of the memory's peak


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def ms(ns: float | None) -> str:
    return "–" if ns is None else "%.2f ms" % (ns / 1e6)


def us(ns: float | None) -> str:
    return "–" if ns is None else "%.1f µs" % (ns / 1e3) if ns < 1e5 else "%.0f µs" % (ns / 1e3)


def aimed(value: float, text: str, good: Callable[[float], bool]) -> str:
    """Bold where the aim is missed."""
    return text if good(value) else "**%s**" % text


def named(clients: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(c for c in clients if c["name"] == name)


def at_least_3(value: float) -> str:
    return aimed(value, "%.1f×" % value, lambda v: v >= 3)


def at_most_15(value: float) -> str:
    return aimed(value, "%.2f×" % value, lambda v: v <= 1.5)


def near(value: float) -> str:
    return aimed(value, "%+.1f %%" % (100 * value), lambda v: abs(v) <= 0.1)


def batch(clients: list[dict[str, Any]]) -> float:
    return sum(c["per_s"] for c in clients if c["kind"] == "batch")


def simulated_batch(run: dict[str, Any]) -> float:
    names = [c["name"] for c in run["clients"] if c["kind"] == "batch"]
    return sum(run["sim"][run["policy"]][name]["per_s"] for name in names)


def about(entry: dict[str, Any]) -> str:
    return "%s, %s, dilation %d%s; %.0f min; load average of the machine at the end, this bench included: %s." % (
        entry["date"],
        entry["machine"],
        entry["dilation"],
        ", daemon and programs SCHED_RR, vgpud above them" if entry["hurried"] else "",
        entry["minutes"],
        entry["load"],
    )


def pair_rows(kept: dict[str, Any]) -> Iterator[list[Any]]:
    for device, entry in kept["pairs"].items():
        alone, stock = named(entry["alone"], "serve"), named(entry["stock"]["clients"], "serve")
        for mechanism in PREEMPTING:
            run = entry[mechanism]
            serve = named(run["clients"], "serve")
            sim = run["sim"][run["policy"]]
            yield [
                device,
                mechanism,
                run["unit"],
                serve["requests"],
                ms(alone["p50"]),
                ms(alone["p99"]),
                ms(stock["p50"]),
                ms(stock["p99"]),
                ms(serve["p50"]),
                ms(serve["p99"]),
                at_least_3(stock["p99"] / serve["p99"]),
                at_most_15(serve["p99"] / alone["p99"]),
                ms(sim["serve"]["p99"]),
                "%.1f" % batch(run["clients"]),
                "%.1f" % simulated_batch(run),
                near(batch(run["clients"]) / simulated_batch(run) - 1),
                run["stats"]["preemptions"],
                "%s / %s" % (us(run["close_ns"]["p50"]), us(run["open_ns"]["p50"])),
            ]


def submit_rows(kept: dict[str, Any]) -> Iterator[list[Any]]:
    for device, entry in kept["pairs"].items():
        run = entry["submit"]
        serve, sim, stock = (
            named(run["clients"], "serve"),
            run["sim"][run["policy"]],
            named(entry["stock"]["clients"], "serve"),
        )
        yield [
            device,
            serve["requests"],
            ms(stock["p50"]),
            ms(stock["p99"]),
            ms(serve["p50"]),
            ms(sim["serve"]["p50"]),
            ms(serve["p99"]),
            ms(sim["serve"]["p99"]),
            at_most_15(serve["p99"] / sim["serve"]["p99"]),
            "%.1f" % batch(run["clients"]),
            "%.1f" % simulated_batch(run),
            near(batch(run["clients"]) / simulated_batch(run) - 1),
            "%s / %s" % (us(run["close_ns"]["p50"]), us(run["open_ns"]["p50"])),
        ]


def stock_rows(kept: dict[str, Any]) -> Iterator[list[Any]]:
    for device, entry in kept["pairs"].items():
        sim = entry["debugger"]["sim"]
        for way, clients in (("alone", entry["alone"]), ("stock", entry["stock"]["clients"])):
            serve, train = named(clients, "serve"), named(clients, "train")
            yield [
                device,
                way,
                ms(serve["p50"]),
                ms(sim[way]["serve"]["p50"]),
                ms(serve["p99"]),
                ms(sim[way]["serve"]["p99"]),
                "%.1f" % train["per_s"],
                "%.1f" % sim[way]["train"]["per_s"],
            ]


def mix_rows(kept: dict[str, Any]) -> Iterator[list[Any]]:
    for name, entry in kept["mixes"].items():
        run = entry["gpreempt"]
        top = max(client["priority"] for client in run["clients"] if client["kind"] == "service")
        for client in run["clients"]:
            if client["kind"] != "service":
                continue
            alone, stock = named(entry["alone"], client["name"]), named(entry["stock"]["clients"], client["name"])
            sim = run["sim"][run["policy"]]
            ratio = client["p99"] / alone["p99"]
            yield [
                name,
                run["policy"],
                "%s (%d)" % (client["name"], client["priority"]),
                client["requests"],
                ms(alone["p99"]),
                ms(stock["p99"]),
                ms(client["p50"]),
                ms(client["p99"]),
                at_least_3(stock["p99"] / client["p99"]),
                at_most_15(ratio) if client["priority"] == top else "(%.2f×)" % ratio,
                ms(sim[client["name"]]["p99"]),
                at_most_15(client["p99"] / sim[client["name"]]["p99"]),
                "%.1f" % batch(run["clients"]),
                "%.1f" % simulated_batch(run),
                near(batch(run["clients"]) / simulated_batch(run) - 1),
                run["stats"]["preemptions"],
                run["stats"]["turns"],
                run["stats"]["hints"],
            ]


def sched(kept: dict[str, Any]) -> list[str]:
    lines = [
        "# Priorities across unmodified programs",
        "",
        "`make bench-sched` (bench/sched). Programs of `demo/` on a virtual node: *emulated, not measured on a GPU*. The GPU is the model of `gpreempt sim`, driven in real time; HIP 5.2.3,",
        "the agent, the daemon and every call to the driver are real. Times are device time: real time over the dilation. All results of all programs were exact, bit for bit (a run",
        "with a wrong element ends the bench).",
        "",
        "Service: Poisson, 50 requests/s, each a copy in, four dependent kernels of 0.5 ms that fill the device, a copy out; priority 80. Trainer: kernels of 20 ms, four rounds of 5 ms",
        "workgroups, back to back; priority 20. Simulated: the same workload with the same moments of arrival, gate unit, description and dilation, and the same warm-up: trainers that run",
        "already, and three requests of each service that do not count. **Bold** misses its aim.",
        "",
        "## Service beside trainer, by mechanism",
        "",
        about(kept["about"]["pairs"]),
        "",
    ]
    lines += table(
        [
            "device",
            "mechanism",
            "unit",
            "requests",
            "p50 alone",
            "p99 alone",
            "p50 stock",
            "p99 stock",
            "p50",
            "p99",
            "stock/p99 (aim ≥ 3)",
            "p99/alone (aim ≤ 1.5)",
            "p99 simulated",
            "trainer per s",
            "simulated",
            "difference (aim ±10 %)",
            "preemptions",
            "close / open call, p50",
        ],
        pair_rows(kept),
    )
    lines += [
        "`submit` is the last of the mechanisms, for drivers that offer nothing better: the agent keeps doorbells back, and what is in the ring runs to its end. The trainer has two kernels of 20 ms",
        "there, so a request that finds them waits for up to 40 ms; no aim of latency can be met, and it is compared with the simulation of launch gating (`lv1`) instead.",
        "",
    ]
    lines += table(
        [
            "device",
            "requests",
            "p50 stock",
            "p99 stock",
            "p50",
            "simulated",
            "p99",
            "simulated",
            "p99/simulated (aim ≤ 1.5)",
            "trainer per s",
            "simulated",
            "difference (aim ±10 %)",
            "close / open call, p50",
        ],
        submit_rows(kept),
    )
    lines += [
        "Alone and stock beside their simulation. With stock scheduling a request takes about 16 ms of the 20 ms until the next one: so near to overload a few percent per request make",
        "tens of percent in the queue.",
        "",
    ]
    lines += table(
        ["device", "run", "p50", "simulated", "p99", "simulated", "trainer per s", "simulated"], stock_rows(kept)
    )
    lines += [
        "## Other mixes, mi210, best mechanism",
        "",
        about(kept["about"]["mixes"]),
        "",
        "`1 urgent + 6 batch`: 40 requests/s. `four priorities`: three services of 40 requests/s each and the trainer. Stock scheduling cannot keep up with either: its p99 is that of",
        "the first 60 requests and would grow with more. `edf`: equal priorities, the service has a deadline of 8 ms and a budget of 2 ms. `wfq`: weights 10000 and 100, or equal ones.",
        '`hint`: the service announces each request 1 ms ahead. The aim "near what it has alone" is for the most urgent client of a mix. A client below waits for the',
        "clients above it (its ratio is in brackets); its aim is the wait that the simulation predicts.",
        "",
    ]
    lines += table(
        [
            "mix",
            "policy",
            "client (priority)",
            "requests",
            "p99 alone",
            "p99 stock",
            "p50",
            "p99",
            "stock/p99 (aim ≥ 3)",
            "p99/alone (aim ≤ 1.5)",
            "p99 simulated",
            "p99/simulated (aim ≤ 1.5)",
            "batch per s",
            "simulated",
            "difference (aim ±10 %)",
            "preemptions",
            "turns",
            "hints",
        ],
        mix_rows(kept),
    )
    return lines + cost_lines(kept)


def cost_lines(kept: dict[str, Any]) -> list[str]:
    cost, reaction = kept["cost"], kept["cost"]["reaction"]
    ratio = {q: reaction["reaction_ns"][q] / reaction["two_hops_ns"][q] for q in ("p10", "p50", "p90")}
    lines = [
        "## What it costs",
        "",
        about(dict(kept["about"]["cost"], dilation=1, hurried=False)),
        "All processes in the ordinary class, as they are where they are used.",
        "The first three rows on the null device.",
        "",
    ]
    lines += table(
        ["what", "value", "aim"],
        [
            [
                "from an urgent doorbell to the order in the hands of the thread that calls the driver, p10 / p50 / p90 (%d times)"
                % reaction["count"],
                " / ".join(us(reaction["reaction_ns"][q]) for q in ratio),
                "",
            ],
            ["two bare futex hops in the same run", " / ".join(us(reaction["two_hops_ns"][q]) for q in ratio), ""],
            [
                "the one over the other",
                " / ".join(aimed(v, "%.2f" % v, lambda x: x <= 1.5) for v in ratio.values()),
                "1.5",
            ],
            [
                "CPU of the daemon, two clients connected and idle for %.0f s" % cost["idle"]["seconds"],
                "%.4f %%, %d wakeups" % (100 * cost["idle"]["daemon"], cost["idle"]["wakeups"]),
                "0.001 %",
            ],
            [
                "CPU of both agents' threads, same time",
                aimed(cost["idle"]["agents"], "%.4f %%" % (100 * cost["idle"]["agents"]), lambda v: v <= 0.00001),
                "0.001 %",
            ],
            [
                "CPU of the daemon under load (50 requests/s beside a trainer, dilation 1)",
                "%.2f %% of a core, %.0f wakeups/s"
                % (100 * cost["load"]["daemon"], cost["load"]["wakeups"] / cost["load"]["seconds"]),
                "",
            ],
            ["CPU of both agents' threads under load", "%.2f %% of a core" % (100 * cost["load"]["agents"]), ""],
        ],
    )
    return lines + [
        "Wakeups of the daemon while idle include those of the two `status` questions that read the counter.",
        "",
    ]


def verdict(good: bool) -> str:
    return "reached" if good else "not reached"


def seed003(kept: dict[str, Any]) -> list[str]:
    cost, pairs = kept["cost"], kept["pairs"]

    def ratio(entry, mechanism):
        return named(entry["stock"]["clients"], "serve")["p99"] / named(entry[mechanism]["clients"], "serve")["p99"]

    ratios = [ratio(entry, m) for entry in pairs.values() for m in PREEMPTING]
    close = pairs["mi210"]["debugger"]["close_ns"]["p50"]
    reaction = cost["reaction"]["reaction_ns"]["p50"]
    floor = SAVE_BYTES["mi210"] / SAVE_RATE["mi210"] * 1e9
    lines = [
        "# Seed 003's own targets",
        "",
        'Its page "UPDATE v2.3" ends with three. Figures from [sched.md](sched.md) (`make bench-sched`): programs on a virtual node, *emulated, not measured on a GPU*.',
        "",
    ]
    idle = cost["idle"]["daemon"] + cost["idle"]["agents"]
    lines += table(
        ["target", "measured", "verdict"],
        [
            [
                "latency ratio > 3 (stock over gpreempt, p99 of the service)",
                "; ".join("%s %s" % (m, ", ".join("%.1f" % ratio(e, m) for e in pairs.values())) for m in PREEMPTING)
                + " (%s)" % ", ".join(pairs),
                verdict(min(ratios) > 3),
            ],
            [
                "… where nothing running can be stopped (mechanism submit)",
                ", ".join("%.1f" % ratio(e, "submit") for e in pairs.values()) + " (%s)" % ", ".join(pairs),
                verdict(min(ratio(e, "submit") for e in pairs.values()) > 3),
            ],
            [
                "preemption < 10 µs",
                "ours: %s from doorbell to the call (p50); the call: %s to close a full MI210 (p50, device time)"
                % (us(reaction), us(close)),
                verdict(reaction + close < 10000),
            ],
            [
                "CPU of the monitor < 0.001 %, idle",
                "daemon %.4f %%, two agents together %.4f %%"
                % (100 * cost["idle"]["daemon"], 100 * cost["idle"]["agents"]),
                verdict(idle < 1e-5),
            ],
            [
                "… and its cost under load (no target)",
                "daemon %.2f %%, two agents together %.2f %% of a core at %.0f transactions/s"
                % (
                    100 * cost["load"]["daemon"],
                    100 * cost["load"]["agents"],
                    cost["load"]["stats"]["transactions"] / 15,
                ),
                "",
            ],
        ],
    )
    lines += [
        "**Which part of a preemption is physics.** A full MI210 holds %.0f MB of registers for these kernels; at %.1f TB/s, the memory's whole peak, saving them takes %.0f µs, so 10 µs"
        % (SAVE_BYTES["mi210"] / 1e6, SAVE_RATE["mi210"] / 1e12, floor / 1e3),
        "is out of reach for any scheduler at full occupancy. The rest of the call is the driver's way through unmap and remap of the whole runlist, which has not been published: the description",
        "assumes 105 µs (60 to 500). What is ours is the way from the doorbell to the call: two hops between processes and a decision.",
        "",
    ]
    return lines


def write(kept: dict[str, Any], output: str) -> None:
    os.makedirs(output, exist_ok=True)
    for name, lines in (("sched", sched(kept)), ("seed003", seed003(kept))):
        with open(os.path.join(output, name + ".md"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines).rstrip("\n") + "\n")
        print("wrote %s/%s.md" % (output, name))
