#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A language model with made-up weights that answers requests: how long to the first token, and from each token to the next. It knows nothing of gpreempt.

    llm.py serve --json FILE --go FILE --seed N {--phase NAME --mode graph|eager --requests N --period-us N --phase-seconds N}...    (as hp)

1.1 billion parameters of 16 bits, shaped as a small Llama; a prompt of 128 tokens, 16 tokens of answer, one request at a time. graph: one CUDA graph for the prompt and one for a token, written
with plain PyTorch. eager: transformers' generate(), or where that is not there (or fails) the same model kernel by kernel. The host sees each token before it goes on, as one that streams does.
--small: sizes for a machine without a GPU. Exact: each answer's tokens are those of the first, and so are, where the model is ours, the last logits, bit for bit.
"""
from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import phases
import pytorch
from pytorch import torch

WARM, PAUSE_S, LATE_NS = 3, 0.05, 100000
ended = []


@dataclasses.dataclass(frozen=True)
class Size:
    layers: int = 22
    width: int = 2048
    heads: int = 32
    shared: int = 4  # heads of keys and values
    inner: int = 5632
    words: int = 32000
    prompt: int = 128
    tokens: int = 16

    @property
    def length(self) -> int:
        return self.prompt + self.tokens


SMALL = Size(layers=2, width=32, heads=4, shared=2, inner=64, words=50, prompt=6, tokens=4)


class Model:
    """The plain model: a cache of fixed length, so that a token is the same kernels each time."""

    def __init__(self, size, device):
        self.size, self.device = size, device
        self.dtype = torch.float16 if device == "cuda" else torch.float32
        torch.manual_seed(1)
        part = size.width // size.heads
        self.part, self.group = part, size.heads // size.shared

        def made(*shape):
            return (torch.randn(*shape, device=device) * 0.02).to(self.dtype)

        self.embedding, self.head = made(size.words, size.width), made(size.words, size.width)
        self.layers = [
            {
                "qkv": made(size.width + 2 * size.shared * part, size.width),
                "out": made(size.width, size.width),
                "up": made(2 * size.inner, size.width),
                "down": made(size.width, size.inner),
                "norm1": torch.ones(size.width, device=device, dtype=self.dtype),
                "norm2": torch.ones(size.width, device=device, dtype=self.dtype),
                "keys": torch.zeros(1, size.shared, size.length, part, device=device, dtype=self.dtype),
                "values": torch.zeros(1, size.shared, size.length, part, device=device, dtype=self.dtype),
            }
            for _ in range(size.layers)
        ]
        angle = torch.outer(
            torch.arange(size.length, device=device).float(),
            10000.0 ** (-torch.arange(0, part, 2, device=device).float() / part),
        )
        self.cos, self.sin = torch.cat([angle.cos()] * 2, -1).to(self.dtype), torch.cat([angle.sin()] * 2, -1).to(
            self.dtype
        )
        self.prompt = torch.randint(size.words, (1, size.prompt), device=device)
        self.prompt_places = torch.arange(size.prompt, device=device)
        self.places = torch.arange(size.length, device=device)
        self.token = torch.zeros(1, 1, dtype=torch.int64, device=device)
        self.place = torch.zeros(1, dtype=torch.int64, device=device)
        self.logits = torch.zeros(size.words, device=device, dtype=self.dtype)

    @staticmethod
    def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-5).to(x.dtype) * weight

    def turned(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        half = self.part // 2
        return x * self.cos[places] + torch.cat([-x[..., half:], x[..., :half]], -1) * self.sin[places]

    def attention(self, layer: dict[str, torch.Tensor], x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        size, count = self.size, x.shape[1]
        q, k, v = torch.nn.functional.linear(x, layer["qkv"]).split(
            [size.width, size.shared * self.part, size.shared * self.part], -1
        )
        q = self.turned(q.view(1, count, size.heads, self.part).transpose(1, 2), places).reshape(
            1, size.shared, self.group, count, self.part
        )
        layer["keys"].index_copy_(
            2, places, self.turned(k.view(1, count, size.shared, self.part).transpose(1, 2), places)
        )
        layer["values"].index_copy_(2, places, v.view(1, count, size.shared, self.part).transpose(1, 2))
        scores = q @ layer["keys"].unsqueeze(2).transpose(-1, -2) * self.part**-0.5
        scores = scores.masked_fill(self.places[None, :] > places[:, None], float("-inf"))
        mixed = torch.softmax(scores.float(), -1).to(x.dtype) @ layer["values"].unsqueeze(2)
        return torch.nn.functional.linear(
            mixed.reshape(1, size.heads, count, self.part).transpose(1, 2).reshape(1, count, size.width), layer["out"]
        )

    def forward(self, tokens: torch.Tensor, places: torch.Tensor) -> None:
        """The next token goes to self.token, its place to self.place."""
        x = self.embedding[tokens]
        for layer in self.layers:
            x = x + self.attention(layer, self.norm(x, layer["norm1"]), places)
            gate, up = torch.nn.functional.linear(self.norm(x, layer["norm2"]), layer["up"]).split(self.size.inner, -1)
            x = x + torch.nn.functional.linear(torch.nn.functional.silu(gate) * up, layer["down"])
        self.logits.copy_(torch.nn.functional.linear(x[0, -1], self.head))
        self.token.copy_(self.logits.argmax().view(1, 1))
        self.place.copy_(places[-1:] + 1)

    def begin(self) -> None:
        self.forward(self.prompt, self.prompt_places)

    def go_on(self) -> None:
        self.forward(self.token, self.place)


class Ours:
    """Answers of the plain model, kernel by kernel or by graphs."""

    def __init__(self, model, is_graph):
        self.model, self.name = model, "plain PyTorch"
        self.seen = torch.zeros(1, 1, dtype=torch.int64, pin_memory=model.device == "cuda")
        self.begin, self.go_on = model.begin, model.go_on
        self.reference, self.wrong = None, torch.zeros((), dtype=torch.int64, device=model.device)
        if is_graph and model.device == "cuda":
            self.begin, self.go_on = self.captured(model.begin), self.captured(model.go_on)

    @staticmethod
    def captured(function: Callable[[], None]) -> Callable[[], None]:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM):
                function()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            function()
        return graph.replay

    def answer(self) -> list[tuple[int, int]]:
        """[(token, when the host saw it)]."""
        found = []
        for number in range(self.model.size.tokens):
            (self.go_on if number else self.begin)()
            self.seen.copy_(self.model.token, non_blocking=True)
            event = pytorch.Event(self.model.device)
            while not event.is_over():
                pass
            found.append((int(self.seen), time.monotonic_ns()))
        if self.reference is None:
            self.reference = self.model.logits.clone()
        self.wrong += (self.model.logits != self.reference).any()
        return found

    def gpu_us(self) -> float | None:
        """How long the GPU needs for an answer, all of it launched at once; meaningful only where nobody else uses it."""
        if self.model.device != "cuda":
            return None
        times = []
        for _ in range(5):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for number in range(self.model.size.tokens):
                (self.go_on if number else self.begin)()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1000)
        return statistics.median(times)


class Seen:
    """What generate() tells of its tokens as they come."""

    def __init__(self):
        self.found, self.has_prompt = [], False

    def put(self, value: torch.Tensor) -> None:
        if self.has_prompt:
            self.found.append((int(value.reshape(-1)[0]), time.monotonic_ns()))
        self.has_prompt = True

    def end(self) -> None:
        pass


class Theirs:
    """transformers' generate()."""

    def __init__(self, size, prompt):
        import transformers  # pylint: disable=import-outside-toplevel,import-error

        config = transformers.LlamaConfig(
            hidden_size=size.width,
            intermediate_size=size.inner,
            num_hidden_layers=size.layers,
            num_attention_heads=size.heads,
            num_key_value_heads=size.shared,
            vocab_size=size.words,
            max_position_embeddings=2048,
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=0,
        )
        torch.manual_seed(1)
        torch.set_default_dtype(torch.float16)
        with torch.device("cuda"):
            self.model = transformers.LlamaForCausalLM(config).eval()
        torch.set_default_dtype(torch.float32)
        self.name, self.prompt, self.count, self.wrong = (
            "transformers %s" % transformers.__version__,
            prompt,
            size.tokens,
            0,
        )
        self.mask = torch.ones_like(prompt)
        for _ in range(WARM):
            if len(self.answer()) != self.count:
                raise RuntimeError("generate() gave %d tokens instead of %d" % (len(self.answer()), self.count))

    def answer(self) -> list[tuple[int, int]]:
        seen = Seen()
        self.model.generate(
            self.prompt,
            attention_mask=self.mask,
            max_new_tokens=self.count,
            min_new_tokens=self.count,
            do_sample=False,
            streamer=seen,
        )
        return seen.found


class Server:
    def __init__(self, device, small, modes):
        size = SMALL if small else Size()
        self.model = Model(size, device)
        self.ways = {"graph": Ours(self.model, True)}
        if "eager" in modes:
            self.ways["eager"] = self.eager(size, device)
        self.tokens = {}
        for mode in modes:
            for _ in range(WARM):
                self.answer(mode)
        self.gpu_us = self.ways["graph"].gpu_us()

    def eager(self, size: Size, device: str) -> Ours | Theirs:
        if device == "cuda":
            try:
                return Theirs(size, self.model.prompt)
            except (
                Exception
            ) as error:  # pylint: disable=broad-except # not there, or another version than is known here
                torch.set_default_dtype(torch.float32)
                print(
                    "transformers is not used: %s: %s"
                    % (type(error).__name__, str(error).splitlines()[0] if str(error) else ""),
                    flush=True,
                )
        return Ours(self.model, False)

    def answer(self, mode: str) -> list[int]:
        """When each token was seen; whether they were those of the first answer."""
        found = self.ways[mode].answer()
        tokens = [token for token, _ in found]
        self.ways[mode].wrong += tokens != self.tokens.setdefault(mode, tokens)
        return [moment for _, moment in found]

    def phase(self, phase: dict[str, Any], seed: int) -> dict[str, Any]:
        draw, due, first, between, late, skipped = random.Random(seed), [], [], [], [], 0
        begin = time.monotonic_ns()
        limit, arrival = begin + int(phase["seconds"] * 1e9), begin
        while len(due) < phase["requests"] and not ended and time.monotonic_ns() < limit:
            arrival += int(phase["period_us"] * 1000 * (0.75 + 0.5 * draw.random()))
            if arrival < time.monotonic_ns():
                skipped += 1  # came while another one was under way
                continue
            while arrival - time.monotonic_ns() > 2000000:
                time.sleep((arrival - time.monotonic_ns() - 1000000) / 1e9)
            while time.monotonic_ns() < arrival:
                pass
            late.append(time.monotonic_ns() - arrival)
            moments = self.answer(phase["mode"])
            due.append(arrival)
            first.append(moments[0] - arrival)
            between += [b - a for a, b in zip(moments, moments[1:])]
        found = {
            "name": phase["name"],
            "begin_ns": begin,
            "end_ns": time.monotonic_ns(),
            "skipped": skipped,
            "hints": 0,
            "hints_missed": 0,
            "late": sum(one > LATE_NS for one in late),
            "late_max_ns": max(late, default=0),
            "due_ns": due,
            "latency_ns": first,
            "token_ns": between,
            "model": self.ways[phase["mode"]].name,
        }
        return found | ({"request_gpu_us": self.gpu_us} if self.gpu_us else {})

    def is_exact(self) -> bool:
        return not any(int(way.wrong) for way in self.ways.values())


def serve(arguments: argparse.Namespace, device: str) -> int:
    server = Server(device, arguments.small, list(dict.fromkeys(phase["mode"] for phase in arguments.phases)))
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
    exact = server.is_exact()
    with open(arguments.json, "w", encoding="ascii") as file:
        json.dump({"exact": exact, "phases": found}, file)
    print("exact" if exact else "WRONG", flush=True)
    return 0 if exact else 3


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=("serve",))
    phases.add(parser, ("graph", "eager"), "graph")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    device = "cuda" if torch and torch.cuda.is_available() else "cpu"
    if not torch or (device == "cpu" and not arguments.small):
        sys.exit("llm.py: %s" % ("PyTorch sees no GPU" if torch else "there is no PyTorch here"))
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    with torch.no_grad():
        return serve(arguments, device)


if __name__ == "__main__":
    sys.exit(main())
