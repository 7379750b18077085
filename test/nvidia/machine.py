# SPDX-License-Identifier: MIT
"""A machine with NVIDIA GPUs and the fake resource manager, in a folder; programs on it. For test/nvidia/daemon, whose arguments it takes."""
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

CASE, MECHANISM = sys.argv[1:3]
GPREEMPTD, CLI, AGENT, FAKE, CLIENT, LOOK = (str(pathlib.Path(p).resolve()) for p in sys.argv[3:9])
FIRST = os.environ.get("PRELOAD_FIRST", "")  # a sanitizer's library, before all others
GPU, OTHER = 6, 0x100  # 0000:00:06.0, 0000:01:00.0
SHORT, LONG = 1, 2048
SLICE_SET, DISABLE = 0xA06C0103, 0x2080110B
CTXSW_MODES, CTXSW_STATS = 0x20801235, 0x20801215
PIECES = 20  # of work while a context is set up
RULE_STATUS, RULE_SIZE, RULE_HANG = 1, 4, 5
WAIT_S = 60


class Machine:
    """A folder that looks like a machine with one H200, or two."""

    def __init__(self, model="NVIDIA H200", config="", gpus=1):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="gp-nvidia-"))
        self.config = config
        self.mechanism = MECHANISM
        self.lease = "60s"  # never by itself, also where the daemon stands still with the machine
        self.answer = "200ms"
        self.long_slice = "0"  # most cases count slices
        self.rest = "1h"  # nobody stops taking turns because an urgent program has nothing to do
        self.socket = self.root / "s"
        self.daemon = None
        self.clients = []
        self.log = self.root / "log"
        self.file(
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n",
        )
        self.file("proc/driver/nvidia/gpus/0000:00:06.0/information", f"Model: \t\t {model}\nDevice Minor: \t 0\n")
        if gpus > 1:
            self.file("proc/driver/nvidia/gpus/0000:01:00.0/information", f"Model: \t\t {model}\nDevice Minor: \t 1\n")
        (self.root / "dev").mkdir()
        self.look("make", *[GPU, OTHER][:gpus])

    def file(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def look(self, *words: Any) -> dict | None:
        answer = subprocess.run([LOOK, str(self.root / "dev"), *map(str, words)], stdout=subprocess.PIPE, check=True)
        return json.loads(answer.stdout) if words[0] == "show" else None

    def start(self, backend: str = "auto", expect: int = 0, wait: bool = True) -> int:
        self.file(
            "conf",
            f"[daemon]\nbackend = {backend}\nsocket = {self.socket}\nstate_dir = {self.root}\nlease = {self.lease}\nanswer_timeout = {self.answer}\n"
            f"[nvidia]\nroot = {self.root}\nmechanism = {self.mechanism}\nlong_slice = {self.long_slice}\nmiddle_slice = 0\n[ceiling]\ndefault = 99\n[policy]\nrest = {self.rest}\n{self.config}",
        )
        environment = dict(os.environ, LD_PRELOAD=FIRST + FAKE, GPREEMPT_FAKE_RM=str(self.root / "dev"))
        self.daemon = subprocess.Popen(
            [GPREEMPTD, "--config", str(self.root / "conf")], env=environment, stderr=open(self.log, "ab")
        )
        if expect:
            return self.daemon.wait(WAIT_S)
        if not wait:
            return 0
        until(self.answers, "the daemon answers")
        return 0

    def answers(self) -> bool:
        require(self.daemon.poll() is None, "the daemon runs")
        environment = dict(os.environ, GPREEMPT_SOCKET=str(self.socket), GPREEMPT_WAIT=str(WAIT_S))
        return not subprocess.run(
            [f"{CLI}/gpreempt-status", "--json"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ).returncode

    def cli(self, *words: Any) -> str:
        environment = dict(os.environ, GPREEMPT_SOCKET=str(self.socket), GPREEMPT_WAIT=str(WAIT_S))
        return subprocess.run(
            [f"{CLI}/gpreempt-{words[0]}", *map(str, words[1:])], env=environment, stdout=subprocess.PIPE, check=True
        ).stdout.decode()

    def status(self) -> dict:
        return json.loads(self.cli("status", "--json"))

    def groups(self) -> dict[str, dict]:
        return self.look("show")["groups"]

    def calls(self, command: int) -> list[dict]:
        return [c for c in self.look("show")["calls"] if c["command"] == command and not c["status"]]

    def end(self) -> None:
        for client in self.clients:
            if client.process.poll() is None and sys.exc_info()[0]:
                client.process.kill()
            client.end()
        if self.daemon and self.daemon.poll() is None:
            self.daemon.terminate()
            self.daemon.wait(WAIT_S)
        shutil.rmtree(self.root)


class Client:
    """A program with one context, on the first GPU or another; priority as `gpreempt run` gives it."""

    def __init__(self, machine, priority, gpu=0, starts=False, more=(), leaves=False, shape=None):
        self.machine = machine
        environment = dict(
            os.environ,
            LD_PRELOAD=FIRST + f"{AGENT}:{FAKE}",
            GPREEMPT_FAKE_RM=str(machine.root / "dev"),
            GPREEMPT_SOCKET=str(machine.socket),
            GPREEMPT_PRIORITY=str(priority),
            **dict(more),
        )
        self.process = subprocess.Popen([CLIENT], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        machine.clients.append(self)
        if leaves:
            require(self.ask("leave") == "ok 0", "its first thread ends")
        if starts == "early":
            require(self.ask("early 1") == "ok 1", "the daemon hears of its group from the first channel on")
        if shape:
            self.start_as(shape)
        elif starts:
            self.say(f"start {PIECES}")
        else:
            self.group = self.context(gpu)

    def start_as(self, shape: str) -> None:
        """Begins to set itself up: one context; two, one after the other or each in a thread of its own; or one that never launches anything."""
        self.starts_as = 0
        if shape == "other forms":
            require([self.ask("xfer 1"), self.ask("rights 1")] == ["ok 1"] * 2, "other forms of the calls")
        if shape == "wide":
            require(self.ask("context 0") == "ok 0", "a first context")
            self.starts_as = 1
        if shape == "two at once":
            self.starts_as = 2
            self.say(f"starts 2 {PIECES}")
        elif shape == "idle":
            self.say("context 0")
        else:
            self.say(f"start {PIECES}")

    def context(self, gpu: int, number: int = 0) -> str:
        """A context, and its group."""
        before = set(self.machine.groups())
        require(self.ask(f"context {gpu}") == f"ok {number}", "a context")
        # A context is not gated before its first kernel has run.
        require(self.ask(f"many {16 * number} 1") == "ok 0", "a first kernel")
        # The compute group comes first; the other is a copy engine's.
        return min(set(self.machine.groups()) - before, key=int)

    def say(self, line: str) -> None:
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, line: str) -> str:
        self.say(line)
        return self.process.stdout.readline().decode().strip()

    def is_ready(self) -> bool:
        """Whether it has set up its context, piece by piece as the hardware let it."""
        return self.process.poll() is None and bool(select.select([self.process.stdout], [], [], 0)[0])

    def has_run(self) -> None:
        """And what it does from then on: a kernel that never ends."""
        require(self.process.stdout.readline().decode().strip() == "ok 0", "it has started")
        self.group = self.ask("group 0").removeprefix("ok ")
        require(self.ask("submit 1 0") == f"ok {PIECES}", "a submission")

    def work(self) -> None:
        """A kernel that never ends."""
        require(self.ask("submit 0 0").startswith("ok"), "a submission")
        self.ask("take 0")

    def get(self) -> dict | None:
        return self.machine.groups().get(self.group)

    def slice(self) -> int:
        return self.get()["slice"]

    def thread(self, name: str) -> str | None:
        """The number of its thread of this name."""
        for path in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                if (path / "comm").read_text().strip() == name:
                    return path.name
            except OSError:
                pass
        return None

    def is_closed(self) -> bool:
        return self.get()["disabled"] == self.get()["channels"]

    def is_whole(self) -> bool:
        return self.get()["disabled"] == 0 and self.slice() == LONG

    def known(self) -> dict | None:
        """As the daemon has it, once it does."""
        for client in self.machine.status()["clients"]:
            if client.get("pid") == self.process.pid and client["queues"] and client["queues"][0]["scheduled"]:
                return client
        return None

    def told(self) -> dict:
        """The same, waited for."""
        return until(self.known, "a scheduled queue")

    def queue(self) -> dict:
        return self.told()["queues"][0]

    def end(self, how: int | None = None) -> None:
        if how:
            self.process.send_signal(how)
        elif self.process.poll() is None:
            self.process.stdin.close()
        try:
            self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired:  # one that stands still reads nothing
            self.process.kill()
            self.process.wait(WAIT_S)
            raise


def require(condition: Any, what: str) -> None:
    if not condition:
        raise AssertionError(what)


def until(condition: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("never: " + what)


def end_thread(client: Client, name: str) -> None:
    done = subprocess.run([os.environ["THREAD_END"], str(client.process.pid), name, "now"], stdout=subprocess.DEVNULL)
    if done.returncode == 77:
        sys.exit(77)
    require(done.returncode == 0, f"the end of {name}")


def join(machine: Machine, priority: int, gpu: int = 0, more: Any = ()) -> Client:
    client = Client(machine, priority, gpu, more=more)
    client.told()
    return client
