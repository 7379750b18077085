#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A PyTorch program that does what it is told, a line at a time: as gpu_client.c, with the kernels, libraries, streams and
graphs that real programs use. Without PyTorch or a GPU it answers "none"."""
import sys

try:
    import torch

    GOOD = torch.cuda.is_available()
except ImportError:
    GOOD = False

STREAMS, CYCLES_MAX = 4, 100000000
STATE = {"cycles": 1000000, "asked": True}  # half a millisecond, in which a piece of work only waits


def context():
    torch.manual_seed(1)
    STATE["streams"] = [torch.cuda.Stream() for _ in range(STREAMS)]
    STATE["matrices"] = [torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for n in (64, 512, 2048)]
    STATE["images"] = torch.randn(8, 64, 56, 56, device="cuda", dtype=torch.bfloat16)
    STATE["layer"] = torch.nn.Conv2d(64, 64, 3, padding=1).cuda().to(torch.bfloat16)
    STATE["host"] = torch.zeros(1 << 20, pin_memory=True)
    STATE["device"] = torch.zeros(1 << 20, device="cuda")
    # Of each stream: pieces of work behind which its counter was stepped, and how many there were.
    STATE["steps"] = [torch.zeros(1, dtype=torch.int64, device="cuda") for _ in range(STREAMS)]
    STATE["expected"] = [0] * STREAMS
    attention = torch.nn.MultiheadAttention(256, 8, batch_first=True).cuda().eval()
    STATE["attention"], STATE["sequence"] = attention, torch.randn(4, 128, 256, device="cuda")
    with torch.no_grad():
        for _ in range(3):
            attention(STATE["sequence"], STATE["sequence"], STATE["sequence"])
            STATE["layer"](STATE["images"])
        torch.cuda.synchronize()
        STATE["graph"] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(STATE["graph"]):
            STATE["out"] = STATE["layer"](STATE["images"]).relu().mean()
        STATE["graph"].replay()
        torch.cuda.synchronize()
        STATE["replayed"] = STATE["out"].item()
    return 0


def work(kind, stream, steps):
    times = 8 + steps // 16
    with torch.no_grad(), torch.cuda.stream(STATE["streams"][stream % STREAMS]):
        if kind == 0:
            for _ in range(times):
                STATE["matrices"][2] @ STATE["matrices"][2]
        elif kind == 1:
            for _ in range(times):
                STATE["matrices"][1] @ STATE["matrices"][1]
        elif kind == 2:
            for _ in range(times):
                STATE["layer"](STATE["images"])
        elif kind == 3:
            STATE["device"].copy_(STATE["host"], non_blocking=True)
            STATE["device"].mul_(2)
        elif kind == 4:
            # A copy alone is a copy engine's, which is not scheduled: the kernel behind it is what is asked about.
            STATE["host"].copy_(STATE["device"], non_blocking=True)
            STATE["device"].add_(1)
        elif kind == 5:
            STATE["attention"](STATE["sequence"], STATE["sequence"], STATE["sequence"])
        elif kind == 6:
            STATE["graph"].replay()
        else:
            for _ in range(times * 4):
                STATE["matrices"][0].sort()
            STATE["device"].sum()
        torch.cuda._sleep(STATE["cycles"])
        STATE["steps"][stream % STREAMS].add_(1)
        STATE["expected"][stream % STREAMS] += 1
    STATE["asked"] = False
    return 0


def lost():
    """Pieces of work whose end never came, and a graph that does not say what it said."""
    torch.cuda.synchronize()
    missing = sum(expected - int(steps.item()) for expected, steps in zip(STATE["expected"], STATE["steps"]))
    return missing + (abs(STATE["out"].item() - STATE["replayed"]) > 0.01 * abs(STATE["replayed"]))


def busy():
    """Work that is over before anybody asks is no work for this test: the next takes longer."""
    streams = STATE["streams"] + [torch.cuda.default_stream()]
    found = int(not all(stream.query() for stream in streams))
    if not found and not STATE["asked"]:
        STATE["cycles"] = min(2 * STATE["cycles"], CYCLES_MAX)
    STATE["asked"] = True
    return found


def carry_out(verb, numbers):
    if not GOOD:
        return "none"
    if verb == "context":
        return f"ok {context()}"
    if verb == "work":
        return f"ok {work(*numbers)}"
    if verb == "busy":
        return f"ok {busy()}"
    if verb == "wait":
        torch.cuda.synchronize()
        return "ok 0"
    if verb == "lost":
        return f"ok {lost()}"
    # Its context ends with it.
    return {"close": "ok 1"}.get(verb, "what?")


for line in sys.stdin:
    words = line.split()
    print(carry_out(words[0], [int(word) for word in words[1:]]), flush=True)
