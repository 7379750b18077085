#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two processes of torch.multiprocessing that send each other tensors on the GPU, until SIGTERM. They know nothing of gpreempt.

    torchpair.py --progress FILE        rounds done at moments (as be)
    torchpair.py --turn FILE --turn-of K/N --windows COUNT --json FILE [--cores N,...]
                                        N pairs take turns (a count in FILE says whose it is); rounds a second in each turn

In each round the first makes a tensor, the second computes with it and sends its result back, the first compares it. --small: on the CPU. Exact: every result is what it must be, bit for bit.
"""
import argparse
import json
import mmap
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

WARM_S, WINDOW_S, WAIT_S = 0.15, 0.5, 0.001
ended = []


class Turn:
    """A count that several pairs share: whose turn it is."""

    def __init__(self, path, words):
        self.place, self.of = (int(word) for word in words.split("/"))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 4096)

    def count(self):
        return struct.unpack_from("=I", self.map)[0]

    def wait(self, window):
        while self.count() < window * self.of + self.place and not ended:
            time.sleep(WAIT_S)

    def over(self):
        struct.pack_into("=I", self.map, 0, self.count() + 1)


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


class Pair:
    def __init__(self, pipe, other, size, device):
        self.pipe, self.other, self.device, self.rounds = pipe, other, device, 0
        self.base = torch.arange(size, device=device, dtype=torch.int32)
        self.wrong = torch.zeros((), dtype=torch.int64, device=device)

    def round(self):
        x = self.base + self.rounds
        self.pipe.send(x)
        result = received(self.pipe, self.other)
        self.wrong += (result != work(x)).any()
        if os.environ.get("TORCHPAIR_CORRUPT") == str(self.rounds):  # for the test
            self.wrong += (result != work(x) + 1).any()
        if self.device == "cuda":
            torch.cuda.current_stream().synchronize()
        self.rounds += 1


def windows(pair, arguments):
    """Rounds a second, in each turn of this pair."""
    turn, found = Turn(arguments.turn, arguments.turn_of), []
    pair.round()
    print("ready", flush=True)
    for window in range(arguments.windows):
        turn.wait(window)
        begin = time.monotonic()
        while time.monotonic() < begin + WARM_S and not ended:
            pair.round()
        begin, rounds = time.monotonic(), pair.rounds
        while time.monotonic() < begin + WINDOW_S and not ended:
            pair.round()
        found.append((pair.rounds - rounds) / (time.monotonic() - begin))
        turn.over()
    with open(arguments.json, "w", encoding="ascii") as file:
        json.dump(found, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--progress", default=os.devnull)
    parser.add_argument("--turn", metavar="FILE")
    parser.add_argument("--turn-of", metavar="K/N", default="0/1")
    parser.add_argument("--windows", type=int, default=1)
    parser.add_argument("--json", default=os.devnull)
    parser.add_argument("--cores", help="the only ones of both processes; by default all")
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    device = "cuda" if torch and torch.cuda.is_available() else "cpu"
    if not torch or (device == "cpu" and not arguments.small):
        sys.exit("torchpair.py: %s" % ("PyTorch sees no GPU" if torch else "there is no PyTorch here"))
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    if arguments.cores:
        os.sched_setaffinity(0, {int(core) for core in arguments.cores.split(",")})
    size = 1000 if arguments.small else 1 << 20
    context = torch.multiprocessing.get_context("spawn")
    pipe, end = context.Pipe()
    other = context.Process(target=second, args=(end,), daemon=True)
    other.start()
    pair = Pair(pipe, other, size, device)
    if arguments.turn:
        windows(pair, arguments)
    else:
        with open(arguments.progress, "wb", buffering=0) as file:
            while not ended or not pair.rounds:
                pair.round()
                file.write(struct.pack("=QQ", time.monotonic_ns(), pair.rounds))
                if pair.rounds == 1:
                    print("ready", flush=True)
    pipe.send(None)
    other.join(20)
    exact = not int(pair.wrong) and other.exitcode == 0
    print("%d rounds, %d differ: %s" % (pair.rounds, int(pair.wrong), "exact" if exact else "WRONG"), flush=True)
    return 0 if exact else 3


if __name__ == "__main__":
    sys.exit(main())
