#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An HTTP server with a model on the GPU that hints when a request arrives: by the time its first kernel is launched less urgent work has been put aside.

    gpreempt run -p high -- python3 serve_http.py --port 8000
    curl -d '{"text": "some words"}' http://127.0.0.1:8000/generate

The hint is one line, `gpreempt.WSGI(...)`; without gpreempt the server works the same. The model is a small network of PyTorch on the GPU; without PyTorch one kernel by CUDA's driver and ctypes; with
--small, for machines without a GPU, a computation on the CPU.

    serve_http.py serve --json FILE --go FILE --seed N {--phase NAME --mode plain|hint --requests N --period-us N --phase-seconds N}...

measures itself, from outside: another process connects, sends a request and waits for the answer, which must be the first one's, byte for byte. FILE: as of bench/nvidia/hp.cu.
"""
import argparse
import ctypes
import http.client
import json
import os
import random
import signal
import socket
import socketserver
import statistics
import subprocess
import sys
import threading
import time
import wsgiref.simple_server
import zlib

try:
    import gpreempt
except ImportError:  # from the source tree
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
    import gpreempt

try:  # to be measured, as bench/nvidia does
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "nvidia"))
    import phases
except ImportError:
    phases = None

WARM, LATE_NS = 30, 100000
TEXT = "the quick brown fox jumps over the lazy dog " * 150  # a prompt of a page or two


class TorchModel:
    """Eight layers on the GPU, launched kernel by kernel."""

    def __init__(self):
        import torch  # pylint: disable=import-outside-toplevel

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")
        self.torch, self.name = torch, "PyTorch %s" % torch.__version__
        torch.manual_seed(1)
        self.table = torch.randn(1000, 2048, device="cuda", dtype=torch.float16)
        self.layers = (
            torch.nn.Sequential(*(layer for _ in range(8) for layer in (torch.nn.Linear(2048, 2048), torch.nn.GELU())))
            .to("cuda", torch.float16)
            .eval()
        )

    def run(self, tokens):
        torch = self.torch
        with torch.no_grad():
            x = self.table[torch.tensor(tokens, device="cuda") % 1000]
            return int(self.layers(x).float().sum().view(torch.int32))  # its bits; waits for the GPU


PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry work(.param .u64 p_sum, .param .u32 p_seed, .param .u32 p_rounds)
{
.reg .u64 %sum;
.reg .u32 %x, %i, %n, %block, %size, %thread;
.reg .pred %p;
ld.param.u64 %sum, [p_sum];
ld.param.u32 %x, [p_seed];
ld.param.u32 %n, [p_rounds];
mov.u32 %block, %ctaid.x;
mov.u32 %size, %ntid.x;
mov.u32 %thread, %tid.x;
mad.lo.u32 %i, %block, %size, %thread;
add.u32 %x, %x, %i;
mov.u32 %i, 0;
again:
mad.lo.u32 %x, %x, 1664525, 1013904223;
add.u32 %i, %i, 1;
setp.lt.u32 %p, %i, %n;
@%p bra again;
red.global.add.u32 [%sum], %x;
ret;
}
\0"""


class CudaModel:
    """One kernel, by CUDA's driver."""

    BLOCKS, THREADS, ROUNDS = 528, 128, 50000

    def __init__(self):
        self.cuda, self.name = ctypes.CDLL("libcuda.so.1"), "CUDA's driver"
        self.context, self.function, self.sum = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        device, module = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuModuleLoadData", ctypes.byref(module), PTX)
        self.call("cuModuleGetFunction", ctypes.byref(self.function), module, b"work")
        self.call("cuMemAlloc_v2", ctypes.byref(self.sum), ctypes.c_size_t(4))

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            raise RuntimeError("%s failed with %d" % (name, status))

    def run(self, tokens):
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuMemsetD32_v2", self.sum, 0, ctypes.c_size_t(1))
        values = (
            ctypes.c_uint64(self.sum.value),
            ctypes.c_uint32(zlib.crc32(bytes(token % 256 for token in tokens))),
            ctypes.c_uint32(self.ROUNDS),
        )
        pointers = (ctypes.c_void_p * 3)(*(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values))
        self.call("cuLaunchKernel", self.function, self.BLOCKS, 1, 1, self.THREADS, 1, 1, 0, None, pointers, None)
        result = ctypes.c_uint32()
        self.call("cuMemcpyDtoH_v2", ctypes.byref(result), self.sum, ctypes.c_size_t(4))  # waits for the GPU
        return result.value


class SmallModel:
    """On the CPU: for trying the server out."""

    name = "a stand-in on the CPU"

    @staticmethod
    def run(tokens):
        value = 1
        for token in tokens * 4:
            value = (value * 1664525 + token) % 2**32
        return value


def best_model(small):
    reasons = []
    for kind in (SmallModel,) if small else (TorchModel, CudaModel):
        try:
            return kind()
        except (ImportError, OSError, RuntimeError) as error:
            reasons.append("%s: %s" % (kind.__name__, error))
    sys.exit("serve_http.py: no model can run here (%s); --small computes on the CPU" % "; ".join(reasons))


class Service:
    """The application: it knows nothing of hints."""

    def __init__(self, model):
        self.model, self.lock, self.leads_us = model, threading.Lock(), []

    def __call__(self, environ, start_response):
        if environ["PATH_INFO"] != "/generate":
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [b"ok\n"]
        try:
            request = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
            tokens = [zlib.crc32(word.encode()) for word in request["text"].split()] or [0]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            start_response("400 Bad Request", [("Content-Type", "text/plain")])
            return [b'send {"text": "..."}\n']
        with self.lock:
            if "serve.arrived_ns" in environ:
                self.leads_us.append((time.monotonic_ns() - environ["serve.arrived_ns"]) / 1000)
            answer = self.model.run(tokens)
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps({"tokens": len(tokens), "answer": answer}).encode() + b"\n"]


class Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True


class Handler(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def address_string(self):
        return self.client_address[0]


class Bench:
    """The server, and what is measured of it from outside."""

    def __init__(self, arguments):
        self.is_hinting, self.service = not arguments.no_hints, Service(best_model(arguments.small))
        self.hinting = gpreempt.WSGI(
            self.service,
            arguments.ahead_us,
            when=lambda environ: self.is_hinting and environ["PATH_INFO"] == "/generate",
        )
        try:
            self.server = wsgiref.simple_server.make_server("127.0.0.1", arguments.port, self.arrived, Server, Handler)
        except OSError as error:
            sys.exit("serve_http.py: port %d cannot be had: %s" % (arguments.port, error.strerror))
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        for _ in range(WARM):
            ask(self.port)
        gpreempt.prepare()

    def arrived(self, environ, start_response):
        environ["serve.arrived_ns"] = time.monotonic_ns()
        return self.hinting(environ, start_response)

    def lead_us(self):
        """From the arrival to the first kernel, of the requests since the last look."""
        leads, self.service.leads_us = self.service.leads_us, []
        return statistics.median(leads) if leads else None

    def phase(self, phase, seed):
        """Requests of a client that is another process, which has neither the agent nor our interpreter's lock."""
        self.is_hinting = phase["mode"] == "hint"
        self.lead_us()
        environment = {
            key: value for key, value in os.environ.items() if key != "LD_PRELOAD" and not key.startswith("GPREEMPT")
        }
        done = subprocess.run(
            [
                sys.executable,
                os.path.abspath(__file__),
                "client",
                "--port",
                str(self.port),
                "--seed",
                str(seed),
                "--phase",
                phase["name"],
                "--mode",
                phase["mode"],
                "--requests",
                str(phase["requests"]),
                "--period-us",
                str(phase["period_us"]),
                "--phase-seconds",
                str(phase["seconds"]),
            ],
            stdout=subprocess.PIPE,
            check=True,
            env=environment,
        )
        found = json.loads(done.stdout)
        lead = self.lead_us()
        return found | {"model": self.service.model.name} | ({"lead_us": lead} if lead and self.is_hinting else {})


def ask(port):
    """One request; the answer."""
    body = json.dumps({"text": TEXT}).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(
            b"POST /generate HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body
        )
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    head, _, answer = b"".join(parts).partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.0 200"):
        raise http.client.HTTPException(head.split(b"\r\n")[0].decode(errors="replace"))
    return answer


def client(arguments):
    """Requests at times drawn from a seed; a request is late by what this process was."""
    phase, draw = arguments.phases[0], random.Random(arguments.seed)
    reference, due, latencies, lates, skipped, wrong = ask(arguments.port), [], [], [], 0, 0
    begin = arrival = time.monotonic_ns()
    while len(due) < phase["requests"] and time.monotonic_ns() < begin + phase["seconds"] * 1e9:
        arrival += int(phase["period_us"] * 1000 * (0.75 + 0.5 * draw.random()))
        if arrival < time.monotonic_ns():
            skipped += 1
            continue
        while arrival - time.monotonic_ns() > 2000000:
            time.sleep((arrival - time.monotonic_ns() - 1000000) / 1e9)
        while time.monotonic_ns() < arrival:
            pass
        lates.append(time.monotonic_ns() - arrival)
        wrong += ask(arguments.port) != reference
        latencies.append(time.monotonic_ns() - arrival)
        due.append(arrival)
    print(
        json.dumps(
            {
                "name": phase["name"],
                "begin_ns": begin,
                "end_ns": time.monotonic_ns(),
                "skipped": skipped,
                "hints": len(due) if phase["mode"] == "hint" else 0,
                "hints_wrong": 0,
                "hints_missed": 0,
                "hint_errors": 0,
                "hint_error": 0,
                "late": sum(late > LATE_NS for late in lates),
                "due_ns": due,
                "latency_ns": latencies,
                "wrong": wrong,
            }
        )
    )
    return 0


def measure(arguments, stop):
    bench = Bench(arguments)
    print("ready", flush=True)
    while arguments.go and not os.path.exists(arguments.go) and not stop.is_set():
        time.sleep(0.001)
    found = []
    for phase in arguments.phases:
        print("phase " + phase["name"], flush=True)
        found.append(bench.phase(phase, arguments.seed))
    exact = not any(phase["wrong"] for phase in found)
    with open(arguments.json, "w", encoding="ascii") as file:
        json.dump({"exact": exact, "phases": found}, file)
    why = gpreempt.reason()
    print(("hints did nothing: %s\n" % why if why else "") + ("exact" if exact else "WRONG"), flush=True)
    return 0 if exact else 3


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", nargs="?", choices=("serve", "client"), default="serve")
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--no-hints", action="store_true")
    parser.add_argument(
        "--ahead-us", type=float, default=gpreempt.AHEAD_US, help="from the arrival of a request to its first kernel"
    )
    if phases:
        phases.add(parser, ("plain", "hint"), "hint")
    else:
        parser.set_defaults(phases=[])
        parser.add_argument("--small", action="store_true", help="on the CPU")
    arguments = parser.parse_args()
    if not 0 <= arguments.port <= 65535:
        parser.error("--port is 0 to 65535")
    if not 0 <= arguments.ahead_us <= 3600e6:
        parser.error("--ahead-us is 0 to an hour")
    return arguments


def main():
    arguments = parse()
    if arguments.role == "client":
        return client(arguments)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())
    if arguments.phases:
        return measure(arguments, stop)
    bench = Bench(arguments)
    print("serving on http://127.0.0.1:%d/generate with %s" % (bench.port, bench.service.model.name), flush=True)
    try:
        stop.wait()
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
