# SPDX-License-Identifier: MIT
"""More cases of test/e2e/sched: everybody is killed and stopped at random, on a virtual node. KILLS: how many (a few unless told), SEED: which. With KILLS
gates must also be open within two leases after the daemon's death, by this clock."""
import os
import random
import signal
import subprocess
import time

from sched_cases import ENDLESS, FAST, Skipped, Stage, case, end_exact, is_all_open, must, packets, wait_progress
from stage import PATIENCE, Program, Trouble, wait_for

KILLS = int(os.environ.get("KILLS") or 0)
LEASE_S = 0.2


class Crowd:
    """A daemon, a service and two trainers. Those that are left go on, whoever was killed."""

    def __init__(self, stage, rng):
        self.stage, self.rng = stage, rng
        self.counts, self.closed_s = {}, 0.0
        self.daemon = stage.daemon()
        self.programs = []
        for kind in ("serve", "train", "train"):
            self.add(kind)

    def start(self, kind: str) -> Program:
        if kind == "serve":
            return self.stage.serve(["-p", "80"], closed=0.05, seconds=ENDLESS)
        return self.stage.train(["-p", "20"])

    def add(self, kind: str) -> None:
        program = self.start(kind)
        program.kind, program.heirs = kind, 0
        program.wait_line("ready")
        self.programs.append(program)

    def pause(self, most: float) -> None:
        time.sleep(self.rng.random() * most)

    def is_dead(self, program: Program) -> None:
        self.stage.programs.remove(program)

    # What happens.

    def daemon_killed(self) -> bool:
        os.kill(self.daemon.pid(), signal.SIGKILL)
        self.daemon.process.wait()
        begin = time.monotonic()

        def asked():
            look = time.monotonic() - begin
            if is_all_open(self.stage, *self.programs):
                return True
            self.closed_s = max(self.closed_s, look)  # a look may take long: it was closed when that one began
            return False

        wait_for("all gates open", asked, every=0.005)
        self.pause(0.2)
        self.daemon = self.stage.daemon()

    def daemon_ended(self) -> None:
        must(self.daemon.end() == 0, "gpreemptd did not end well; " + self.daemon.tail())
        self.daemon = self.stage.daemon()

    def daemon_stopped(self) -> None:
        self.daemon.signal(signal.SIGSTOP)
        self.pause(0.8)
        self.daemon.signal(signal.SIGCONT)

    def program_killed(self) -> None:
        program = self.programs.pop(self.rng.randrange(len(self.programs)))
        program.kill()
        self.is_dead(program)
        self.add(program.kind)

    def program_killed_starting(self) -> None:
        program = self.start(self.rng.choice(("serve", "train")))
        self.pause(1)
        program.kill()
        self.is_dead(program)

    def program_stopped(self) -> None:
        program = self.rng.choice(self.programs)
        program.signal(signal.SIGSTOP)
        self.pause(0.5)
        program.signal(signal.SIGCONT)

    def end_thread(self, program: Program, name: str) -> bool:
        """False: there is none."""
        done = subprocess.run(
            [os.path.join(self.stage.build, "test", "e2e", "thread-end"), str(program.pid()), name, "now"],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        if done.returncode == 77:
            raise Skipped(done.stdout.strip())
        return done.returncode == 0

    def thread_ended(self) -> None:
        """After the third there is no heir: then the program is replaced."""
        program = self.rng.choice(self.programs)
        program.heirs += 1
        if program.heirs > 3 or not self.end_thread(program, "gpreempt-agent"):
            self.program_killed()

    def guard_ended(self) -> None:
        self.end_thread(self.rng.choice(self.programs), "gpreempt-guard")

    def one(self) -> None:
        event = self.rng.choice(
            [
                self.daemon_killed,
                self.daemon_ended,
                self.daemon_stopped,
                self.program_killed,
                self.program_killed_starting,
                self.program_stopped,
                self.thread_ended,
                self.guard_ended,
            ]
        )
        self.pause(0.3)
        event()
        self.counts[event.__name__] = self.counts.get(event.__name__, 0) + 1
        for program in self.programs:
            try:
                wait_progress(self.stage, program, 1)
            except Trouble as trouble:
                raise Trouble(
                    "after %s: %s; gates %s" % (event.__name__, trouble, self.stage.node()["queues"])
                ) from None


def kills(build: str, name: str) -> None:
    """Daemon, programs and threads of the agent are killed and stopped at random, programs while they start as well: the survivors go on, and are exact."""
    seed = int(os.environ.get("SEED") or 1)
    print("seed %d" % seed, flush=True)
    with Stage(build, dilation=FAST, mechanism=name, hasty=True) as stage:
        crowd = Crowd(stage, random.Random(seed))
        for number in range(KILLS or 6):
            crowd.one()
            if number % 50 == 49:
                print("%d of %d" % (number + 1, KILLS), flush=True)
        os.kill(crowd.daemon.pid(), signal.SIGKILL)
        crowd.daemon.process.wait()
        wait_for("all gates open", lambda: is_all_open(stage, *crowd.programs))
        for program in crowd.programs:
            must(packets(stage, program) > 0, "%s has done nothing" % program.name)
        end_exact(*crowd.programs)
        print(
            "%s, seed %d: %d kills, %s; a gate seen closed %.0f ms after the daemon's death at most"
            % (name, seed, sum(crowd.counts.values()), crowd.counts, crowd.closed_s * 1000),
            flush=True,
        )
        must(
            not KILLS or crowd.closed_s <= 2 * LEASE_S,
            "a gate was closed %.0f ms after the daemon's death" % (crowd.closed_s * 1000),
        )


@case
def kills_kernel(build: str) -> None:
    kills(build, "kernel")


@case
def kills_debugger(build: str) -> None:
    kills(build, "debugger")


@case
def kills_self(build: str) -> None:
    kills(build, "self")


@case
def kills_update(build: str) -> None:
    kills(build, "update")


@case
def kills_submit(build: str) -> None:
    kills(build, "submit")
