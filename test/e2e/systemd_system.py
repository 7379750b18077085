# SPDX-License-Identifier: MIT
"""systemd as the first process of a PID namespace, over the files of this machine or of a Debian in a folder, which stay as they are.

For test/e2e/systemd and test/ops. Everything it starts it ends.
"""
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from stage import PATIENCE, Trouble, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
SYSTEMD = "/lib/systemd/systemd"
os.environ["GPREEMPT_WAIT"] = "60"  # seconds, for an answer of the daemon's


def must(good: Any, what: str) -> None:
    if not good:
        raise Trouble(what)


class Skipped(Exception):
    """What the test needs is not here."""


def cgroup_root() -> str:
    """Where this machine has its unified hierarchy."""
    with open("/proc/self/mounts", encoding="utf-8") as file:
        found = [line.split()[1] for line in file if line.split()[2] == "cgroup2"]
    if not found:
        raise Skipped("there is no cgroup2")
    return found[0]


class System:
    """systemd on a stage.

    lower: the files it is laid over, "/" for this machine's, whose build is then installed in it. binds: folders that it sees under their
    own names, read-only. has_node: whether it sees the stage's virtual node. A lower of its own has a network of its own: loopback alone.
    """

    def __init__(self, stage, lower="/", binds=(), has_node=True):
        self.stage, self.lower = stage, lower
        self.group = os.path.join(cgroup_root(), "gpreempt-test-%d" % os.getpid())
        os.mkdir(self.group)
        self.folder = stage.file("system")
        os.mkdir(self.folder)
        self.log = open(stage.file("boot.out"), "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        # The group first: the namespace's root is where its first process is.
        script = 'echo $$ >"$0/cgroup.procs" && exec "$@"'
        argv = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "--pid",
            "--fork",
            "--kill-child",
            "--uts",
            "--ipc",
            "--cgroup",
            *([] if lower == "/" else ["--net"]),
            os.path.join(HERE, "systemd_boot"),
            self.folder,
            stage.build,
            lower,
            *binds,
        ]
        self.process = subprocess.Popen(
            ["sh", "-c", script, self.group, *(stage.on_node(argv) if has_node else argv)],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
            env=dict(os.environ, GPREEMPT_BOOT_DEV="" if has_node else "own"),
        )
        try:
            self.first = wait_for("systemd is there", self.find_first)
            wait_for(
                "the system is up",
                lambda: self.run("systemctl", "is-active", "test.target", check=False).stdout.strip() == "active",
            )
        except Trouble:
            self.close()
            raise

    def find_first(self) -> int | None:
        if self.process.poll() is not None:
            self.log.seek(0)
            raise Trouble("the system ended: " + self.log.read())
        try:
            with open(os.path.join(self.group, "init.scope", "cgroup.procs"), encoding="ascii") as file:
                pids = file.read().split()
        except OSError:
            return None
        return next((int(pid) for pid in pids if os.path.realpath("/proc/%s/exe" % pid).endswith("/systemd")), None)

    def enter(self, argv: Sequence[str]) -> list[str]:
        return ["nsenter", "-t", str(self.first), "-m", "-p", "-u", "-i", "-n", "-C", *argv]

    def run(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(self.enter(argv), capture_output=True, text=True, check=False, timeout=PATIENCE)
        if check and done.returncode:
            raise Trouble("%s: status %d: %s%s" % (" ".join(argv), done.returncode, done.stdout, done.stderr))
        return done

    def shell(
        self,
        script: str,
        check: bool = True,
        user: str | None = None,
        seconds: float = PATIENCE,
        environment: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        """A script as an administrator (or a user) types it: a service of the system, in a cgroup of the system's own."""
        argv = [
            "systemd-run",
            "--quiet",
            "--pipe",
            "--wait",
            "--collect",
            "--working-directory=/",
            *(["--uid=" + user] if user else []),
            "--setenv=GPREEMPT_WAIT=60",
            *("--setenv=" + e for e in environment),
            "bash",
            "-euc",
            ("cd ~\n" if user else "") + script,
        ]
        # A pipe, not the machine's /dev/null: what is run may change the owner of its standard input.
        done = subprocess.run(self.enter(argv), input="", capture_output=True, text=True, check=False, timeout=seconds)
        if check and done.returncode:
            raise Trouble(
                "%s\nstatus %d: %s%s" % (script.strip(), done.returncode, done.stdout[-4000:], done.stderr[-4000:])
            )
        return done

    def show(self, name: str) -> str:
        return self.run("systemctl", "show", "--value", "-p", name, "gpreemptd").stdout.strip()

    def journal(self) -> str:
        return self.run("journalctl", "--no-pager", "-o", "cat", "-u", "gpreemptd").stdout

    def path(self, path: str) -> str:
        """A file of the system as this machine sees it."""
        return "/proc/%d/root%s" % (self.first, path)

    def read(self, path: str) -> str:
        with open(self.path(path), encoding="utf-8", errors="replace") as file:
            return file.read()

    def write(self, path: str, text: str, mode: int | None = None) -> None:
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "w", encoding="utf-8") as file:
            file.write(text)
        if mode is not None:
            os.chmod(self.path(path), mode)

    def status(self) -> dict[str, Any] | None:
        done = self.run("gpreempt", "status", "--json", check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def answer(self) -> dict[str, Any]:
        """The status, of a daemon that runs."""
        return wait_for("the daemon answers", self.status)

    def close(self) -> None:
        self.process.kill()
        if getattr(self, "first", None):
            try:
                os.kill(self.first, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        for _ in range(50):
            for folder, _, _ in sorted(os.walk(self.group), reverse=True):
                try:
                    os.rmdir(folder)
                except OSError:
                    pass
            if not os.path.isdir(self.group):
                break
            time.sleep(0.1)
        self.log.close()
