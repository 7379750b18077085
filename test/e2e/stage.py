# SPDX-License-Identifier: MIT
"""The stage on which unmodified programs are shown: a virtual node, the daemon on it, programs started with and without priorities.

Used by tools/demo, the end-to-end tests (test/e2e/sched) and the benches (bench/sched). Everything it starts it ends; files are in
a folder of its own. Nothing in it decides anything by time but "this takes too long".
"""
import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "demo")
PATIENCE = float(
    os.environ.get("STAGE_PATIENCE", "120")
)  # seconds after which something that should happen counts as not happening


class Trouble(Exception):
    """Something that should have happened did not."""


def not_built(build: str) -> str | None:
    """What was not built, as a sentence; None: everything was. Any user may then start a virtual node: without root its front end is seccomp."""
    for program, why in (
        ("vgpu/vgpu", "libdrm's headers are missing"),
        ("vgpu/vgpud", "libdrm's headers are missing"),
        ("demo/serve", "Debian's ROCm is missing"),
        ("demo/train", "Debian's ROCm is missing"),
    ):
        if not os.path.exists(os.path.join(build, program)):
            return "%s was not built (%s)" % (program, why)
    return None


def missing(build: str) -> str | None:
    """Why no virtual node with FUSE, of which root owns the mounts, can be had here, as a sentence; None: it can."""
    if os.geteuid() != 0:
        return "the virtual node's front end needs root"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return "there is no /dev/fuse that can be opened (%s)" % error.strerror
    version = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
    if version < (6, 9):
        return "FUSE passes mappings through since Linux 6.9; this is %s" % os.uname().release
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        return "no mount namespace may be made here"
    for program in ("vgpu/vgpu", "vgpu/vgpud"):
        if not os.path.exists(os.path.join(build, program)):
            return "%s was not built (libdrm's headers are missing)" % program
    return None


def hurry() -> bool:
    """For figures: daemon and programs go before other work on the machine, and the virtual GPU, which is a process, before all of it.
    Whether that may be done. Real-time classes, because nice counts only within a session, and each program has one of its own.
    """
    if subprocess.run(["chrt", "--rr", "2", "true"], capture_output=True, check=False).returncode:
        return False
    Stage.hurried = True
    return True


def wait_for(what: str, question: Callable[[], Any], seconds: float = PATIENCE, every: float = 0.05) -> Any:
    """Asks until the answer is true; returns it."""
    end = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > end:
            raise Trouble("waited %.0f s in vain: %s" % (seconds, what))
        time.sleep(every)


class Program:
    """A program on the stage, its output in a file."""

    def __init__(
        self, stage: "Stage", name: str, argv: list[str], environment: dict[str, str], json_path: str | None = None
    ) -> None:
        self.stage, self.name, self.json_path = stage, name, json_path
        self.path = stage.file(name + ".out")
        with open(self.path, "wb") as output:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    def output(self) -> str:
        with open(self.path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def tail(self) -> str:
        return "%s said:\n%s" % (self.name, "\n".join(self.output().splitlines()[-25:]))

    def wait_line(self, line: str, seconds: float = PATIENCE) -> None:
        def asked():
            if line in self.output().splitlines():
                return True
            if self.process.poll() is not None:
                raise Trouble(
                    "%s ended (status %d) before it said '%s'; %s"
                    % (self.name, self.process.returncode, line, self.tail())
                )
            return False

        wait_for("'%s' of %s; %s" % (line, self.name, self.tail()), asked, seconds)

    def is_running(self) -> bool:
        return self.process.poll() is None

    def wait(self, seconds: float = PATIENCE) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Trouble("%s did not end within %.0f s; %s" % (self.name, seconds, self.tail())) from None

    def pid(self) -> int:
        """Of the program itself: vgpu run is its parent."""
        children = "/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)

        def asked():
            if not self.is_running():
                raise Trouble("%s ended with status %d; %s" % (self.name, self.process.returncode, self.tail()))
            try:
                with open(children, encoding="ascii") as file:
                    found = file.read().split()
            except OSError:
                return None
            return int(found[0]) if found else None

        return wait_for("the process of " + self.name, asked)

    def signal(self, number: int) -> None:
        os.kill(self.pid(), number)

    def end(self, seconds: float = PATIENCE) -> int:
        """Asks it to end, and waits; its status."""
        if self.is_running():
            self.signal(signal.SIGTERM)
        return self.wait(seconds)

    def kill(self) -> None:
        """The program, and vgpu run, which has it in a process group of its own."""
        if self.is_running():
            try:
                self.signal(signal.SIGKILL)
                os.killpg(self.process.pid, signal.SIGKILL)
            except (Trouble, ProcessLookupError):
                pass
        self.process.wait()

    def result(self) -> dict:
        with open(self.json_path, encoding="utf-8") as file:
            return json.load(file)


class Stage:
    """One virtual node and what runs on it. Use it in a `with`."""

    hurried = False  # hurry()

    def __init__(
        self,
        build: str,
        device: str = "mi210",
        dilation: float = 20,
        gpus: int = 1,
        kernels: str | None = None,
        name: str | None = None,
        mechanism: str | None = None,
        params: Sequence[str] = (),
    ) -> None:
        self.build = os.path.abspath(build)
        self.device, self.dilation, self.gpus = device, dilation, gpus
        self.kernels = kernels or os.path.join(FOLDER, "kernels.ini")
        self.name = name or "stage-%d" % os.getpid()
        # Where a test does not say which mechanism it wants, another one can be asked for: the same tests over it.
        self.mechanism, self.params = mechanism or os.environ.get("GPREEMPT_STAGE_MECHANISM"), list(params)
        if self.mechanism == "kernel":
            self.params += ["--param", "vgpu_kfd_sched=1"]  # the node's driver has kernel/patches
        # Another module parameter for every node, e.g. vgpu_execute=2: kernels executed, not described.
        if os.environ.get("GPREEMPT_STAGE_PARAM") and "--param" not in self.params:
            self.params += ["--param", os.environ["GPREEMPT_STAGE_PARAM"]]
        self.folder = tempfile.mkdtemp(prefix="gpreempt-stage.")
        os.chmod(self.folder, 0o755)
        self.socket = self.file("gpreempt.sock")
        self.programs, self.daemons, self.count = [], [], 0

    def file(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def program_path(self, name: str) -> str:
        return os.path.join(self.build, "demo", name)

    def __enter__(self) -> "Stage":
        atexit.register(self.close)
        command = [
            self.vgpu(),
            "start",
            "--name",
            self.name,
            "-d",
            self.device,
            "-n",
            str(self.gpus),
            "--dilate",
            str(self.dilation),
            "-k",
            self.kernels,
            *self.params,
        ]
        command = self.first(2, command)
        # To a file: vgpud keeps what it inherits.
        with open(self.file("vgpud.out"), "w+", encoding="utf-8") as output:
            if subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False, timeout=PATIENCE
            ).returncode:
                output.seek(0)
                raise Trouble("%s: %s" % (" ".join(command), output.read().strip()))
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.close()

    def close(self) -> None:
        for program in self.programs + self.daemons:
            program.kill()
        self.programs, self.daemons = [], []
        if os.path.isdir(self.folder):
            subprocess.run([self.vgpu(), "stop", "--name", self.name], capture_output=True, check=False)
            shutil.rmtree(self.folder, ignore_errors=True)

    def vgpu(self) -> str:
        return os.path.join(self.build, "vgpu", "vgpu")

    def gpreempt(self) -> str:
        return os.path.join(self.build, "cli", "gpreempt")

    def environment(self) -> dict[str, str]:
        environment = dict(os.environ)
        environment["GPREEMPT_SOCKET"] = self.socket
        environment.setdefault("GPREEMPT_WAIT", "60")  # a daemon that stands still with the machine is waited for
        for name in ("LD_PRELOAD", "HSA_TOOLS_LIB"):
            environment.pop(name, None)
        return environment

    def first(self, level: int, argv: list[str]) -> list[str]:
        return ["chrt", "--rr", str(level), *argv] if self.hurried else argv

    def on_node(self, argv: list[str]) -> list[str]:
        return [self.vgpu(), "run", "--name", self.name, "--", *self.first(1, argv)]

    def start(
        self,
        argv: list[str],
        name: str | None = None,
        json_path: str | None = None,
        extra: dict[str, str] | None = None,
    ) -> Program:
        """Starts a command on the node."""
        self.count += 1
        environment = self.environment()
        environment.update(extra or {})
        program = Program(
            self, "%s-%d" % (name or os.path.basename(argv[0]), self.count), self.on_node(argv), environment, json_path
        )
        self.programs.append(program)
        return program

    def ask(self, *argv: str, check: bool = True, seconds: float = PATIENCE) -> subprocess.CompletedProcess:
        """Runs a gpreempt command on the node to its end; its output."""
        done = subprocess.run(
            self.on_node([self.gpreempt(), *argv]),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env=self.environment(),
        )
        if check and done.returncode:
            raise Trouble("gpreempt %s: status %d: %s%s" % (" ".join(argv), done.returncode, done.stdout, done.stderr))
        return done

    # The demonstration programs.

    def managed(self, argv: list[str], run_options: Sequence[str] | None) -> list[str]:
        return argv if run_options is None else [self.gpreempt(), "run", *run_options, "--", *argv]

    def serve(
        self,
        run_options: Sequence[str] | None = None,
        name: str = "serve",
        program: str = "serve",
        extra: dict[str, str] | None = None,
        **options: Any,
    ) -> Program:
        path = self.file("%s-%d.json" % (name, self.count + 1))
        argv = [self.program_path(program), "--json", path]
        for option, value in options.items():
            argv += ["--" + option, str(value)]
        return self.start(self.managed(argv, run_options), name, path, extra)

    def train(
        self,
        run_options: Sequence[str] | None = None,
        name: str = "train",
        program: str = "train",
        extra: dict[str, str] | None = None,
        **options: Any,
    ) -> Program:
        return self.serve(run_options, name, program, extra, **options)

    # The daemon.

    def daemon(
        self, settings: dict[str, str] | None = None, extra: dict[str, str] | None = None, wrapper: Sequence[str] = ()
    ) -> Program:
        """Starts gpreemptd on the node and waits until it answers. wrapper: a command that becomes what follows it."""
        path = self.file("gpreemptd.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.configuration(settings or {}))
        self.count += 1
        environment = self.environment()
        environment.update(extra or {})
        program = Program(
            self,
            "gpreemptd-%d" % self.count,
            self.on_node(
                [*wrapper, os.path.join(self.build, "daemon", "gpreemptd"), "--config", path, "--socket", self.socket]
            ),
            environment,
        )
        self.daemons.append(program)

        def asked():
            if not program.is_running():
                raise Trouble("gpreemptd ended with status %d; %s" % (program.process.returncode, program.tail()))
            return self.ping() == program.pid()

        wait_for("gpreemptd answers; " + program.tail(), asked)
        return program

    def configuration(self, settings: dict[str, str]) -> str:
        sections = {"daemon": {"socket": self.socket, "state_dir": self.file("state")}}
        if self.mechanism:
            sections.setdefault("kfd", {})["mechanism"] = self.mechanism
        for name, value in settings.items():
            section, _, key = name.partition(".")
            sections.setdefault(section, {})[key] = value
        return "".join(
            "[%s]\n%s\n" % (section, "".join("%s = %s\n" % item for item in values.items()))
            for section, values in sections.items()
        )

    def ping(self) -> int | None:
        """The daemon's pid; None: nobody answers."""
        done = self.ask("status", "--json", check=False)
        try:
            return json.loads(done.stdout)["daemon"]["pid"] if done.returncode == 0 else None
        except (ValueError, KeyError):
            return None

    def status(self) -> dict:
        return json.loads(self.ask("status", "--json").stdout)

    def client(self, program: Program, status: dict | None = None) -> dict | None:
        """A program's object in the status, or None."""
        pid = program.pid()
        return next((c for c in (status or self.status())["clients"] if c.get("pid") == pid), None)

    # The node's own counters.

    def node(self) -> dict:
        """`vgpu ls -v`, parsed: {'total': {…}, 'gpus': [{…}], 'queues': [{…}]}."""
        text = subprocess.run(
            [self.vgpu(), "ls", "-v"], capture_output=True, text=True, check=True, timeout=PATIENCE
        ).stdout
        node = {"total": {}, "now": {}, "gpus": [], "queues": []}
        inside = False
        for line in text.splitlines():
            words = line.split()
            if not words or "=" not in line:
                inside = bool(words) and words[0] == self.name
                continue
            if not inside:
                continue
            values = {
                key: int(value)
                for key, _, value in (word.partition("=") for word in words[1:])
                if value.lstrip("-").isdigit()
            }
            if words[0] in ("total", "now"):
                node[words[0]] = values
            elif words[0] in ("gpu", "queue"):
                node[words[0] + "s"].append(values)
        return node

    def queues(self, program: Program) -> list[dict]:
        pid = program.pid()
        return [queue for queue in self.node()["queues"] if queue["pid"] == pid]
