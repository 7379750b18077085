#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two processes of torch.multiprocessing that send each other tensors on the GPU, until SIGTERM. They know nothing of gpreempt.

    torchpair.py --progress FILE        rounds done at moments (as be)

In each round the first makes a tensor, the second computes with it and sends its result back, the first compares it. --small: on the CPU. Exact: every result is what it must be, bit for bit.
"""
import argparse
import os
import signal
import struct
import sys
import time

try:
    import torch
    import torch.multiprocessing
except ImportError:
    torch = None

ended = []


def work(x):
    for _ in range(4):
        x = x * 3 + 1
    return x


def second(pipe):
    """Answers until it gets None. A tensor belongs to the one that made it until the other has let it go."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        x = pipe.recv()
        if x is None:
            return
        result = work(x).clone()
        del x
        pipe.send(result)


def received(pipe, other):
    """What the other one sent; an end with a sentence where it is gone."""
    while not pipe.poll(0.5):
        if not other.is_alive():
            sys.exit("torchpair.py: the other process ended with status %s" % other.exitcode)
    return pipe.recv()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--progress", default=os.devnull)
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    device = "cuda" if torch and torch.cuda.is_available() else "cpu"
    if not torch or (device == "cpu" and not arguments.small):
        sys.exit("torchpair.py: %s" % ("PyTorch sees no GPU" if torch else "there is no PyTorch here"))
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    size = 1000 if arguments.small else 1 << 20
    context = torch.multiprocessing.get_context("spawn")
    pipe, end = context.Pipe()
    other = context.Process(target=second, args=(end,), daemon=True)
    other.start()
    base, wrong, rounds = (
        torch.arange(size, device=device, dtype=torch.int32),
        torch.zeros((), dtype=torch.int64, device=device),
        0,
    )
    with open(arguments.progress, "wb", buffering=0) as file:
        while not ended or not rounds:
            x = base + rounds
            pipe.send(x)
            result = received(pipe, other)
            wrong += (result != work(x)).any()
            if os.environ.get("TORCHPAIR_CORRUPT") == str(rounds):  # for the test
                wrong += (result != work(x) + 1).any()
            if device == "cuda":
                torch.cuda.current_stream().synchronize()
            del result, x
            rounds += 1
            file.write(struct.pack("=QQ", time.monotonic_ns(), rounds))
            if rounds == 1:
                print("ready", flush=True)
    pipe.send(None)
    other.join(20)
    exact = not int(wrong) and other.exitcode == 0
    print("%d rounds, %d differ: %s" % (rounds, int(wrong), "exact" if exact else "WRONG"), flush=True)
    return 0 if exact else 3


if __name__ == "__main__":
    sys.exit(main())
