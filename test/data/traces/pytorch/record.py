#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records the traces of this folder with PyTorch's own profiler, on a machine with an NVIDIA GPU.

usage: record.py FOLDER

Each program below has one habit that a report should find, or none. The files are what the profiler wrote, packed; only the
path under "traceName" is left out.
"""
import gzip
import json
import os
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def record(folder, name, step, steps=3, sync=True, warm=2):
    """step(i) is called `warm` times before the profiler begins, so that start-up is not in the trace; 0: it is."""
    for i in range(warm):
        step(i)
    torch.cuda.synchronize()
    config = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True) if sync else None
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        experimental_config=config,
        schedule=schedule(wait=0, warmup=1 if warm else 0, active=steps, repeat=1),
    ) as profiler:
        for i in range(steps + (1 if warm else 0)):
            step(i)
            profiler.step()
        torch.cuda.synchronize()
    path = os.path.join(folder, name + ".json")
    profiler.export_chrome_trace(path)
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    trace.pop("traceName", None)
    with gzip.GzipFile(os.path.join(folder, name + ".pt.trace.json.gz"), "wb", mtime=0) as file:
        file.write(json.dumps(trace, separators=(",", ":")).encode())
    os.unlink(path)


def train():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 32 * 32, 10),
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step(i):
        data, target = torch.randn(64, 3, 64, 64), torch.randint(0, 10, (64,))
        with record_function("copy in"):
            data, target = data.cuda(), target.cuda()
        loss = torch.nn.functional.cross_entropy(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def decode():
    """The shape of a language model that writes: many small kernels, then the host wants the token."""
    layers = (
        torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True) for _ in range(3))
        .cuda()
        .eval()
    )
    head, state = torch.nn.Linear(256, 1000).cuda(), {"x": torch.randn(1, 8, 256, device="cuda")}

    def step(i):
        with torch.no_grad():
            x = state["x"]
            for layer in layers:
                x = layer(x)
            token = head(x[:, -1]).argmax(-1).item()
            state["x"] = torch.cat([state["x"][:, 1:], torch.full((1, 1, 256), token / 1000.0, device="cuda")], 1)

    return step


def streams():
    """Two streams that wait for each other by events."""
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    a, b = torch.randn(2048, 2048, device="cuda"), torch.randn(2048, 2048, device="cuda")

    def step(i):
        first, second = torch.cuda.Event(), torch.cuda.Event()
        with torch.cuda.stream(one):
            x = a @ b
            first.record()
        with torch.cuda.stream(two):
            two.wait_event(first)
            y = x @ b
            second.record()
        with torch.cuda.stream(one):
            one.wait_event(second)
            z = y @ a
            z = z + x
        one.synchronize()

    return step


def copies():
    """Large copies from memory that is not pinned, and one from memory that is."""
    plain, pinned, device = torch.zeros(1 << 24), torch.zeros(1 << 24).pin_memory(), torch.zeros(1 << 24, device="cuda")

    def step(i):
        device.copy_(plain)
        device.copy_(pinned, non_blocking=True)
        torch.sin_(device)
        plain.copy_(device)

    return step


def allocations():
    """Memory goes back to the driver after every step."""

    def step(i):
        for n in range(8):
            x = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
            x.fill_(n)
            del x
            torch.cuda.empty_cache()

    return step


def graph():
    x, w = torch.randn(256, 256, device="cuda"), torch.randn(256, 256, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            y = torch.relu(x @ w)
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = x
        for _ in range(10):
            y = torch.relu(y @ w) / 16

    def step(i):
        captured.replay()
        return y

    return step


def host():
    """The host reads and thinks while the GPU has nothing to do."""
    w = torch.randn(1024, 1024, device="cuda")

    def step(i):
        with record_function("load a batch"):
            time.sleep(0.004)
        for _ in range(4):
            torch.relu(w @ w)
        torch.cuda.synchronize()

    return step


def many_streams():
    lines = [torch.cuda.Stream() for _ in range(32)]
    w = [torch.randn(256, 256, device="cuda") for _ in range(32)]
    torch.cuda.synchronize()

    def step(i):
        for line, x in zip(lines, w):
            with torch.cuda.stream(line):
                x @ x

    return step


def driver():
    """A kernel that Triton launches: by the driver's interface, not the runtime's."""
    import triton
    import triton.language as tl

    @triton.jit
    def double(x, n, SIZE: tl.constexpr):
        at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        tl.store(x + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)

    x = torch.randn(1 << 20, device="cuda")

    def step(i):
        for _ in range(4):
            double[(1024,)](x, 1 << 20, SIZE=1024)
            torch.relu_(x)

    return step


def ahead():
    """All launched at once: kernels stand in line for long, and the profiler's end waits for them."""
    w = torch.randn(2048, 2048, device="cuda")

    def step(i):
        for _ in range(40):
            w @ w

    return step


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(1)
    record(folder, "cold", lambda i: torch.nn.functional.gelu(torch.randn(1 << 16).cuda()).sum().item(), warm=0)
    for name in (
        "train",
        "decode",
        "streams",
        "copies",
        "allocations",
        "graph",
        "host",
        "many_streams",
        "driver",
        "ahead",
    ):
        try:
            record(folder, name, globals()[name](), steps=12 if name == "decode" else 3, sync=name != "train")
        except Exception as error:  # one program less is better than none
            print(f"{name}: {error!r}", flush=True)


if __name__ == "__main__":
    main()
