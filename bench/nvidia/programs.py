# SPDX-License-Identifier: MIT
"""Starts, watches and ends what bench/nvidia/run measures: batch and urgent programs, gpreemptd, a private MPS server.

Everything it starts it ends, in the order last to first, and each wait has a limit. It never touches a process it did not start, and
changes no setting of the GPU.
"""
from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

PLACES = ("", "cli", "daemon", "agent", "libgpreempt", "bench")  # a flat folder, or a build tree
PATIENCE = 40.0  # seconds to start; eight CUDA contexts at once take a while
READ_AGAIN = "configuration read again"  # says gpreemptd after a reload
END_S = float(
    os.environ.get("NVBENCH_END_S", "25")
)  # to end after being asked: a batch program finishes its kernels first


class Trouble(Exception):
    """Something that should have happened did not; the row fails, the next is tried."""


class Ended(Exception):
    """The time is up, or somebody asked us to end."""


class Signals:
    """Signals end us by an exception, but not while a process is being started: one that nobody has noted would be left behind."""

    held, pending = 0, None

    @classmethod
    def handle(cls, number: int, frame: FrameType | None) -> None:
        if cls.held:
            cls.pending = number
        else:
            raise Ended(f"signal {number}")

    @classmethod
    @contextlib.contextmanager
    def hold(cls) -> Iterator[None]:
        cls.held += 1
        try:
            yield
        finally:
            cls.held -= 1
        if cls.pending and not cls.held:
            number, cls.pending = cls.pending, None
            raise Ended(f"signal {number}")


class Stuck(Trouble):
    """A process cannot even be killed: it hangs in the driver. Nothing further is tried."""


def find(folder: str, *names: str) -> str | None:
    """The first of these files in a folder of ready programs, or None."""
    for name in names:
        for place in PLACES:
            path = os.path.join(folder, place, name)
            if os.path.exists(path):
                return os.path.abspath(path)
    return None


def wait_for(what: str | Callable[[], str], question: Callable[[], Any], seconds: float, every: float = 0.02) -> Any:
    end = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > end:
            raise Trouble("waited %.0f s in vain: %s" % (seconds, what() if callable(what) else what))
        time.sleep(every)


class Child:
    """A program, its output in a file."""

    def __init__(self, name, argv, environment, folder):
        self.name, self.path, self.is_asked = name, os.path.join(folder, name + ".out"), False
        with open(self.path, "wb") as output:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid  # gpreempt run becomes the program

    def output(self) -> str:
        with open(self.path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def said(self) -> str:
        lines = [line for line in self.output().splitlines() if line.strip()]
        return "%s said: %s" % (self.name, " / ".join(lines[-3:]) or "nothing")

    def is_running(self) -> bool:
        return self.process.poll() is None

    def wait_line(self, line: str, seconds: float = PATIENCE) -> None:
        def asked():
            if line in self.output().splitlines():
                return True
            if not self.is_running():
                raise Trouble("%s ended with status %d; %s" % (self.name, self.process.returncode, self.said()))
            return False

        wait_for(lambda: "'%s' of %s" % (line, self.said()), asked, seconds)

    def wait(self, seconds: float) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Trouble("%s did not end within %.0f s; %s" % (self.name, seconds, self.said())) from None

    def ask_to_end(self) -> None:
        """Once: a second signal would meet a program that is about to say whether its results were exact."""
        if self.is_running() and not self.is_asked:
            self.is_asked = True
            self.process.send_signal(signal.SIGTERM)

    def end(self, seconds: float = END_S) -> int:
        """Asks it to end; its status."""
        self.ask_to_end()
        return self.wait(seconds)

    def kill(self) -> None:
        """Whatever it does. Stuck, if it outlives even that."""
        if self.is_running():
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            raise Stuck("%s (pid %d) cannot be killed" % (self.name, self.pid)) from None


class Progress:
    """What a batch program noted of itself: work units at moments, read from its file."""

    def __init__(self, path):
        self.path = path

    def records(self) -> list[tuple[int, int]]:
        try:
            with open(self.path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return []
        return list(struct.iter_unpack("=QQ", data[: len(data) // 16 * 16]))

    def last(self) -> tuple[int, int] | None:
        try:
            with open(self.path, "rb") as file:
                size = os.fstat(file.fileno()).st_size // 16
                if not size:
                    return None
                file.seek(16 * (size - 1))
                return struct.unpack("=QQ", file.read(16))
        except FileNotFoundError:
            return None


def units_at(records: list[tuple[int, int]], moment: float) -> float | None:
    """Work done up to a moment, between two records linearly. The moment must be inside."""
    low, high = 0, len(records) - 1
    if high < 1 or not records[0][0] <= moment <= records[high][0]:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if records[middle][0] <= moment:
            low = middle
        else:
            high = middle
    (t0, u0), (t1, u1) = records[low], records[high]
    return u0 + (u1 - u0) * (moment - t0) / (t1 - t0)


def rate(records: list[tuple[int, int]], begin: float, end: float) -> float | None:
    """Units per second from begin to end (ns), or None where the records do not cover it."""
    first, last = units_at(records, begin), units_at(records, end)
    if first is None or last is None or end <= begin:
        return None
    return (last - first) / (end - begin) * 1e9


class Stage:
    """The programs of one row at a time."""

    def __init__(self, folder, binaries, settings=None, daemon_options=()):
        self.folder, self.binaries = folder, binaries
        self.settings, self.daemon_options = dict(settings or {}), list(daemon_options)
        self.children, self.count, self.mps = [], 0, None
        self.socket = os.path.join(folder, "gpreempt.sock")
        self.iters, self.rate = None, None
        self.lists, self.baseline_s = {}, 2.0
        here = os.path.dirname(os.path.abspath(__file__))
        self.python = {
            "torch": [sys.executable, os.path.join(here, "pytorch.py")],
            "jax": [sys.executable, os.path.join(here, "jaxtrain.py")],
            "llm": [sys.executable, os.path.join(here, "llm.py")],
            "mp": [sys.executable, os.path.join(here, "torchpair.py")],
            "http": [sys.executable, os.path.join(here, "..", "..", "libgpreempt", "example", "serve_http.py")],
        }
        self.module = os.path.join(here, "..", "..", "libgpreempt", "python")
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o755)

    def program(self, *names: str) -> str:
        path = find(self.binaries, *names)
        if not path:
            raise Trouble("%s is not in %s" % (names[0], self.binaries))
        return path

    def environment(self, extra: dict[str, str] | None = None) -> dict[str, str]:
        environment = {
            key: value for key, value in os.environ.items() if key not in ("LD_PRELOAD", "CUDA_MPS_PIPE_DIRECTORY")
        }
        environment["GPREEMPT_SOCKET"] = self.socket
        agent = find(self.binaries, "libgpreempt-agent.so")
        if agent:
            environment["GPREEMPT_AGENT_PATH"] = agent
        environment.update(extra or {})
        return environment

    def start(self, name: str, argv: list[str], extra: dict[str, str] | None = None) -> Child:
        self.count += 1
        with Signals.hold():
            child = Child("%s-%d" % (name, self.count), argv, self.environment(extra), self.folder)
            self.children.append(child)
        return child

    def managed(self, priority: int | None, argv: list[str]) -> list[str]:
        """The command itself, or with a priority."""
        if priority is None:
            return argv
        return [self.program("gpreempt"), "run", "-p", str(priority), "--require", "--check", "0", "--", *argv]

    def tap(self, name: str) -> tuple[dict[str, str], str]:
        """Environment that has the driver's handles of a program written down, and where."""
        library = find(self.binaries, "libtap.so")
        path = os.path.join(self.folder, name + ".tap")
        if os.path.exists(path):
            os.unlink(path)
        return ({"LD_PRELOAD": library, "NVBENCH_TAP": path} if library else {}), path

    def batch(
        self,
        priority: int | None = None,
        ms: int = 50,
        listed: str | None = None,
        sample_us: int = 2000,
        extra: dict[str, str] | None = None,
    ) -> Child:
        """Starts a batch program; its child with .progress and .tap."""
        name = "be-%d" % (self.count + 1)
        path = os.path.join(self.folder, name + ".progress")
        if listed in self.python:
            argv = [*self.python[listed], "train", "--progress", path]
        else:
            argv = [self.program("be"), "--progress", path, "--sample-us", str(sample_us)]
            argv += (
                ["--list", self.lists[listed], "--rate", "%.6f" % self.rate]
                if listed
                else ["--ms", str(ms), "--iters", str(self.iters)]
            )
        environment, tap = self.tap(name)
        child = self.start("be", self.managed(priority, argv), environment | (extra or {}))
        child.progress, child.tap = Progress(path), tap
        return child

    def urgent(
        self,
        options: list[str],
        priority: int | None = None,
        name: str = "hp",
        extra: dict[str, str] | None = None,
        program: str = "hp",
    ) -> Child:
        """Starts an urgent program, hp or one in Python; its child with .json."""
        path = os.path.join(self.folder, "%s-%d.json" % (name, self.count + 1))
        go = path + ".go"
        command = (
            [self.program("hp"), "--rate", "%.6f" % self.rate] if program == "hp" else [*self.python[program], "serve"]
        )
        argv = [*command, "--json", path, "--go", go, *options]
        library = find(self.binaries, "libgpreempt.so.0", "libgpreempt.so")
        if "--hint" in options and library:
            argv += ["--hint-lib", library]
        environment, tap = self.tap("%s-%d" % (name, self.count + 1))
        if program == "http":
            environment |= {"PYTHONPATH": self.module} | ({"GPREEMPT_LIBRARY": library} if library else {})
        child = self.start(name, self.managed(priority, argv), environment | (extra or {}))
        child.json, child.go, child.tap = path, go, tap
        return child

    def go(self, *children: Child) -> None:
        """They begin to make requests."""
        for child in children:
            with open(child.go, "w", encoding="ascii"):
                pass

    def configure(self, settings: Iterable[tuple[str, str]] = ()) -> str:
        """Writes gpreempt.conf; its path."""
        path = os.path.join(self.folder, "gpreemptd.conf")
        sections = {"daemon": {"socket": self.socket, "state_dir": os.path.join(self.folder, "state")}}
        for name, value in {**self.settings, **dict(settings)}.items():
            section, _, key = name.partition(".")
            sections.setdefault(section, {})[key] = value
        with open(path, "w", encoding="utf-8") as file:
            for section, values in sections.items():
                file.write("[%s]\n%s\n" % (section, "".join("%s = %s\n" % item for item in values.items())))
        return path

    def reload(self, child: Child, settings: Iterable[tuple[str, str]] = ()) -> None:
        """The daemon goes on with other settings, those that take effect without a restart."""
        self.configure(settings)
        before = child.output().count(READ_AGAIN)
        child.process.send_signal(signal.SIGHUP)

        def asked():
            if not child.is_running():
                raise Trouble("gpreemptd ended with status %d; %s" % (child.process.returncode, child.said()))
            return child.output().count(READ_AGAIN) > before

        wait_for(lambda: "gpreemptd reads its settings; " + child.said(), asked, 5)

    def daemon(self, settings: Iterable[tuple[str, str]] = ()) -> Child:
        path = self.configure(settings)
        child = self.start(
            "gpreemptd", [self.program("gpreemptd"), "--config", path, "--socket", self.socket, *self.daemon_options]
        )

        def asked():
            if not child.is_running():
                raise Trouble("gpreemptd ended with status %d; %s" % (child.process.returncode, child.said()))
            return self.status()

        wait_for(lambda: "gpreemptd answers; " + child.said(), asked, 15)
        return child

    def status(self) -> dict | None:
        """What `gpreempt status --json` says, or None."""
        try:
            with Signals.hold():
                done = subprocess.run(
                    [self.program("gpreempt"), "status", "--json"],
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=10,
                    env=self.environment(),
                )
            return json.loads(done.stdout) if done.returncode == 0 else None
        except (subprocess.TimeoutExpired, ValueError):
            return None

    def calibrate(self) -> dict:
        """On an idle device: how long the programs' loops take. Alike for everything that is compared."""
        found = {}
        for program in ("be", "hp"):
            child = self.start(program + "-calibrate", [self.program(program), "--calibrate"])
            if child.wait(60):
                raise Trouble("%s --calibrate failed; %s" % (program, child.said()))
            found.update(json.loads(child.output().splitlines()[-1]))
        self.iters, self.rate = found["iters"], found["rate"]
        self.check_checks()
        return found

    def check_checks(self) -> None:
        """A batch program whose reference was damaged must say so: a check that cannot fail would make every row exact."""
        child = self.start("be-planted", [self.program("be"), "--plant", "--ms", "5", "--iters", str(self.iters)])
        child.wait_line("ready")
        time.sleep(0.1)
        if child.end() != 3 or '"gpu_wrong": 0,' in child.output():
            raise Trouble("be does not notice wrong results; %s" % child.said())

    def mps_start(self) -> dict[str, str]:
        """A server of our own; the environment of its clients."""
        control = shutil.which("nvidia-cuda-mps-control")
        if not control:
            raise Trouble("there is no nvidia-cuda-mps-control on this machine")
        environment = {}
        for name in ("PIPE", "LOG"):
            environment["CUDA_MPS_%s_DIRECTORY" % name] = os.path.join(self.folder, "mps-" + name.lower())
            os.makedirs(environment["CUDA_MPS_%s_DIRECTORY" % name], exist_ok=True)
        self.mps = self.start("mps", [control, "-f"], environment)
        self.mps.control, self.mps.environment = control, environment
        time.sleep(1)
        if not self.mps.is_running():
            raise Trouble("nvidia-cuda-mps-control ended; " + self.mps.said())
        return environment

    def mps_stop(self) -> None:
        if self.mps and self.mps.is_running():
            try:
                subprocess.run(
                    [self.mps.control],
                    input="quit\n",
                    text=True,
                    capture_output=True,
                    check=False,
                    timeout=15,
                    env=self.environment(self.mps.environment),
                )
                self.mps.wait(10)
            except (subprocess.TimeoutExpired, Trouble):
                pass
        if self.mps:
            self.kill_servers(self.mps.environment["CUDA_MPS_PIPE_DIRECTORY"])
        self.mps = None

    @staticmethod
    def kill_servers(pipe: str) -> None:
        """Of our own MPS those that outlived its control: gpreemptd does nothing on a machine where one runs."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/comm" % pid, encoding="ascii", errors="replace") as comm, open(
                    "/proc/%s/environ" % pid, "rb"
                ) as environ:
                    if comm.read().startswith("nvidia-cuda-mps") and (
                        "CUDA_MPS_PIPE_DIRECTORY=" + pipe
                    ).encode() in environ.read().split(b"\0"):
                        os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass

    def close(self) -> None:
        """Ends everything, the last one first: clients before their daemon or server."""
        stuck = None
        for child in reversed([c for c in self.children if c is not self.mps]):
            try:
                child.kill()
            except Stuck as trouble:
                stuck = trouble
        self.mps_stop()
        for child in self.children:
            try:
                child.kill()
            except Stuck as trouble:
                stuck = trouble
        self.children = []
        if stuck:
            raise stuck


def xid_lines() -> list[str] | None:
    """What the kernel has said about GPU errors so far; None: it does not tell us."""
    try:
        with Signals.hold():
            done = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace", check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return [line for line in done.stdout.splitlines() if "Xid" in line] if done.returncode == 0 else None
