#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The urgent and the batch program as PyTorch programs that know nothing of gpreempt: a transformer that answers requests, and one that is trained.

    pytorch.py train --progress FILE                                        until SIGTERM; steps done at moments (as be)
    pytorch.py serve --json FILE --go FILE --seed N {--phase NAME --mode graph|eager --requests N --period-us N --phase-seconds N}...   (as hp)

--small: sizes for a machine without a GPU, where it runs on the CPU. Exact: each answer is compared with the first; training begins anew from the same state every few
steps, and the losses and the weights of each such round must be those of the first, bit for bit. Both were interrupted at other points.
"""
from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import random
import signal
import struct
import sys
import time
from typing import Any

import phases

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what makes matrix products repeatable
try:
    import torch
except ImportError:
    torch = None

AHEAD, ROUND, WARM, PAUSE_S = (
    3,
    8,
    10,
    0.05,
)  # steps launched ahead of the GPU, of a round; requests before the first; before a phase
LATE_NS = 100000  # a request that the host began so late says so
ended = []


class Block(torch.nn.Module if torch else object):
    """Attention and two products, each with what they are given added, of made-up weights."""

    def __init__(self, width, heads, device):
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width, device=device) for _ in range(2)])
        self.products = torch.nn.ModuleList(
            [torch.nn.Linear(a * width, b * width, device=device) for a, b in ((1, 3), (1, 1), (1, 4), (4, 1))]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            self.products[0](self.norms[0](x))
            .view(batch, length, 3, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        mixed = torch.softmax(q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5, -1) @ v
        x = x + self.products[1](mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.products[3](torch.nn.functional.gelu(self.products[2](self.norms[1](x))))


def model_of(layers: int, width: int, heads: int, device: str, dtype: torch.dtype) -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(*(Block(width, heads, device) for _ in range(layers))).to(dtype)


class Event:
    """The end of everything launched so far. On a CPU that is now."""

    def __init__(self, device):
        self.event = torch.cuda.Event() if device == "cuda" else None
        if self.event:
            self.event.record()

    def is_over(self) -> bool:
        return self.event is None or self.event.query()

    def wait(self) -> None:
        if self.event:
            self.event.synchronize()


class Trainer:
    def __init__(self, device, small):
        layers, width, heads, batch, length = (2, 32, 2, 2, 8) if small else (8, 2048, 16, 16, 512)
        dtype = torch.bfloat16 if device == "cuda" else torch.float32
        self.device, self.model = device, model_of(layers, width, heads, device, dtype)
        self.weights = list(self.model.parameters())
        self.first = [weight.detach().clone() for weight in self.weights]
        self.data = torch.randn(batch, length, width, device=device, dtype=dtype)
        self.losses = torch.zeros(ROUND, device=device)
        self.reference, self.wrong, self.count = None, torch.zeros((), dtype=torch.int64, device=device), 0

    def bits(self) -> list[torch.Tensor]:
        """Losses and weights of a round, as whole numbers: what is no number is equal to itself, too."""
        return [
            tensor.detach().view(torch.int16 if tensor.element_size() == 2 else torch.int32)
            for tensor in (*self.weights, self.losses)
        ]

    def step(self) -> None:
        """Launches a step and, behind the last of a round, its check."""
        place = self.count % ROUND
        loss = (self.model(self.data) - self.data.roll(1, 1)).float().square().mean()
        loss.backward()
        with torch.no_grad():
            self.losses[place] = loss
            for weight in self.weights:
                weight.add_(weight.grad, alpha=-0.01)
                weight.grad = None
            self.count += 1
            if place + 1 == ROUND:
                if self.reference is None:
                    self.reference = [tensor.clone() for tensor in self.bits()]
                self.wrong += torch.stack(
                    [(found != first).any() for found, first in zip(self.bits(), self.reference)]
                ).any()
                for weight, first in zip(self.weights, self.first):
                    weight.copy_(first)


def train(arguments: argparse.Namespace, device: str) -> int:
    trainer = Trainer(device, arguments.small)
    for _ in range(ROUND):
        trainer.step()
    with open(arguments.progress, "wb", buffering=0) as file:
        flying = [Event(device)]
        flying[0].wait()
        done = 0
        file.write(struct.pack("=QQ", time.monotonic_ns(), done))
        print("ready", flush=True)
        while not ended:
            trainer.step()
            flying.append(Event(device))
            if len(flying) > AHEAD:
                flying.pop(0).wait()
                done += 1
                file.write(struct.pack("=QQ", time.monotonic_ns(), done))
    wrong, varied = int(trainer.wrong), len(set(trainer.losses.tolist())) > 1
    exact = (
        not wrong and varied and bool(torch.isfinite(trainer.losses).all())
    )  # losses that do not change would be no check
    print("%d steps, %d rounds differ: %s" % (trainer.count, wrong, "exact" if exact else "WRONG"), flush=True)
    return 0 if exact else 3


class Server:
    def __init__(self, device, small, capacity):
        layers, width, heads, length = (2, 32, 2, 8) if small else (12, 1024, 16, 128)
        dtype = torch.float16 if device == "cuda" else torch.float32
        self.device, self.model = device, model_of(layers, width, heads, device, dtype).eval()
        self.input = torch.randn(1, length, width, device=device, dtype=dtype)
        self.answers = torch.zeros(capacity, width, dtype=dtype, pin_memory=device == "cuda")
        self.count, self.graph, self.output = 0, None, None
        for _ in range(WARM):
            self.model(self.input)
        if device == "cuda":
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.output = self.model(self.input)[0].mean(0)

    def request(self, mode: str) -> Event:
        """Launches one: kernel by kernel, or all at once. Its answer goes to the host."""
        if mode == "graph" and self.graph:
            self.graph.replay()
            answer = self.output
        else:
            answer = self.model(self.input)[0].mean(0)
        self.answers[self.count].copy_(answer, non_blocking=True)
        self.count += 1
        return Event(self.device)

    def phase(self, phase: dict[str, Any], seed: int) -> dict[str, Any]:
        draw, due, latencies, lates, launches, skipped = random.Random(seed), [], [], [], [], 0
        begin = time.monotonic_ns()
        limit, arrival = begin + int(phase["seconds"] * 1e9), begin
        while len(due) < phase["requests"] and not ended and time.monotonic_ns() < limit:
            arrival += int(phase["period_us"] * 1000 * (0.5 + draw.random()))
            if arrival < time.monotonic_ns():
                skipped += 1  # came while another one was under way
                continue
            while arrival - time.monotonic_ns() > 2000000:
                time.sleep((arrival - time.monotonic_ns() - 1000000) / 1e9)
            while time.monotonic_ns() < arrival:
                pass
            lates.append(time.monotonic_ns() - arrival)
            event = self.request(phase["mode"])
            launches.append(time.monotonic_ns() - arrival - lates[-1])
            while not event.is_over():
                pass
            latencies.append(time.monotonic_ns() - arrival)
            due.append(arrival)
        return {
            "name": phase["name"],
            "begin_ns": begin,
            "end_ns": time.monotonic_ns(),
            "skipped": skipped,
            "hints": 0,
            "hints_missed": 0,
            "late": sum(late > LATE_NS for late in lates),
            "late_max_ns": max(lates, default=0),
            "launch_max_ns": max(launches, default=0),
            "due_ns": due,
            "late_ns": lates,
            "launch_ns": launches,
            "latency_ns": latencies,
        }

    def is_exact(self, phases: list[dict[str, Any]]) -> bool:
        """Each answer that of the first of its phase: a graph may choose other kernels than are launched one by one."""
        place, exact = 0, bool(self.answers[: self.count].isfinite().all()) and bool(self.answers[: self.count].any())
        for phase in phases:
            answers = self.answers[place : place + len(phase["latency_ns"])]
            exact = exact and bool((answers == answers[:1]).all())
            place += len(answers)
        return exact


def serve(arguments: argparse.Namespace, device: str) -> int:
    server = Server(device, arguments.small, sum(phase["requests"] for phase in arguments.phases) + 2 * WARM)
    for _ in range(WARM):
        for mode in ("eager", "graph"):
            server.request(mode).wait()
    server.count = 0
    print("ready", flush=True)
    while arguments.go and not os.path.exists(arguments.go) and not ended:
        time.sleep(0.001)
    gc.collect()
    gc.disable()
    found = []
    for phase in arguments.phases:
        print("phase " + phase["name"], flush=True)
        time.sleep(PAUSE_S)
        found.append(server.phase(phase, arguments.seed))
    exact = server.is_exact(found)
    with open(arguments.json, "w", encoding="ascii") as file:
        json.dump({"exact": exact, "phases": found}, file)
    print("exact" if exact else "WRONG", flush=True)
    return 0 if exact else 3


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=("train", "serve"))
    parser.add_argument("--progress", default=os.devnull)
    phases.add(parser, ("graph", "eager"), "graph")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    device = "cuda" if torch and torch.cuda.is_available() else "cpu"
    if not torch or (device == "cpu" and not arguments.small):
        sys.exit("pytorch.py: %s" % ("PyTorch sees no GPU" if torch else "there is no PyTorch here"))
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    torch.use_deterministic_algorithms(True)
    if hasattr(torch.utils, "deterministic"):
        torch.utils.deterministic.fill_uninitialized_memory = False  # a kernel more for each result
    with torch.no_grad() if arguments.role == "serve" else contextlib.nullcontext():
        return {"train": train, "serve": serve}[arguments.role](arguments, device)


if __name__ == "__main__":
    sys.exit(main())
