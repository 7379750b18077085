# SPDX-License-Identifier: MIT
"""Cases of test/nvidia/daemon: programs that start, threads that end, and everybody killed at random."""
import os
import pathlib
import random
import re
import signal
import sys
import time

from machine import LONG, MECHANISM, SHORT, WAIT_S, Client, Machine, end_thread, join, require, until
from waits import Host

ORDERS = [
    # (what, settings, programs that are there and work, programs that start together, one group after the other)
    ("urgent, batch, batch", "", [80], [[20], [20]]),
    ("urgent, two batch at once", "", [80], [[20, 20]]),
    ("two urgent and two batch at once", "", [], [[80, 80, 20, 20]]),
    ("batch, batch, urgent", "", [], [[20], [20], [80]]),
    ("no short slice", "[nvidia]\nshort_slice = 0\n", [80], [[20], [20]]),
    ("long turns", "[policy]\nturn = 2s\n", [80], [[20], [20]]),
    ("many batch", "[policy]\nturn = 5ms\n", [80], [[20] * 4, [20] * 4]),
    ("an urgent kernel that never ends", "", [-80], [[20], [20]]),
    ("three priorities", "", [80], [[20], [50], [20], [50]]),
]


def starts_case(_: Machine) -> None:
    """Programs start beside others, in every order: all of them get through. No channel is ever disabled twice, and when the daemon is killed all are open."""
    for what, config, there, groups in ORDERS:
        for keeps in (0, 1):
            machine = Machine(config=config)
            machine.answer = "60s"  # nobody is in quarantine because the machine is slow
            try:
                machine.look("keeps", keeps)
                machine.start()
                for priority in there:
                    client = join(machine, abs(priority))
                    if priority < 0:
                        client.work()
                for priorities in groups:
                    clients = [Client(machine, priority, starts="early" if keeps else True) for priority in priorities]
                    for client in clients:
                        until(client.is_ready, f"{what}: a program starts beside {len(machine.clients) - 1}")
                        client.has_run()
                    for client in clients:
                        client.told()
                require(machine.look("show")["disabled_most"] <= 1, f"{what}: a channel was disabled more than once")
                batch = [c for c in machine.clients if not c.told()["queues"][0]["priority"] == 80]
                until(lambda: sum(not c.is_closed() for c in batch) == 1, f"{what}: one batch program is open")
                machine.daemon.kill()
                machine.daemon.wait(WAIT_S)
                until(lambda: all(c.is_whole() for c in machine.clients), f"{what}: all are open and long")
            finally:
                machine.end()


def guard_case(machine: Machine) -> None:
    """The agent's guard ends, unnoticed: it is replaced with the next order. Then its thread ends: the new guard opens the gates and takes over."""
    machine.config = "[policy]\nturn = 5ms\n"
    machine.start()
    join(machine, 80)
    batch = [join(machine, 20) for _ in range(2)]
    for client in batch:
        client.work()
    for _ in range(3):
        victim = batch[0]
        guard = until(lambda: victim.thread("gpreempt-guard"), "there is a guard")
        end_thread(victim, "gpreempt-guard")
        until(lambda: victim.thread("gpreempt-guard") not in (None, guard), "there is another guard")
    thread = victim.thread("gpreempt-agent")
    end_thread(victim, "gpreempt-agent")
    until(lambda: victim.thread("gpreempt-agent") not in (None, thread), "somebody took over")
    opens = {c: c.queue()["opens"] for c in batch}
    until(lambda: all(c.queue()["opens"] > opens[c] for c in batch), "turns go on")
    machine.daemon.kill()
    machine.daemon.wait(WAIT_S)
    until(lambda: all(c.is_whole() for c in batch), "given back")


def left_case(machine: Machine) -> None:
    """The first thread of a program ends while its gate is closed, the others go on: turns go on, and contexts that it
    makes from then on are scheduled by the same means, as are those of a program that has left before its first."""
    kernel = tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])
    if MECHANISM == "borrow" and kernel < (6, 9):
        print("skipped: before Linux 6.9 the daemon cannot borrow from a program whose first thread has ended")
        return
    machine.mechanism = "auto" if MECHANISM == "borrow" else MECHANISM
    machine.config = "[policy]\nturn = 20ms\n"
    machine.start()
    urgent = join(machine, 80)
    batch = [join(machine, 20) for _ in range(2)]
    for client in batch:
        client.work()
    leaving = until(lambda: next((c for c in batch if c.is_closed()), None), "one is closed")
    require(leaving.ask("leave") == "ok 0", "its first thread ends")
    until(lambda: pathlib.Path(f"/proc/{leaving.process.pid}/status").read_text().count("State:\tZ"), "it is a zombie")
    opens = {c: c.queue()["opens"] for c in batch}
    until(lambda: all(c.queue()["opens"] > opens[c] + 2 for c in batch), "turns go on")
    first, leaving.group = leaving.group, leaving.context(0, 1)
    until(lambda: len([q for q in leaving.told()["queues"] if q["scheduled"]]) == 2, "its second context is scheduled")
    require(leaving.told()["mechanism"] == MECHANISM, leaving.told()["mechanism_why"])
    until(lambda: leaving.slice() == SHORT, "which is short")
    left = Client(machine, 20, leaves=True)
    require(left.told()["mechanism"] == MECHANISM, left.told()["mechanism_why"])
    until(lambda: left.slice() == SHORT, "one that has left before is short")
    require(urgent.is_whole(), "the urgent one")
    require(left.ask("slice? 0") == f"ok {LONG}", "it believes its slice to be its own")
    require(left.ask("hostile") == "ok 0", "addresses that cannot be read are the driver's to refuse")
    require(left.ask("end 0") == "ok 0", "it closes its file")
    until(
        lambda: not [c for c in machine.status()["clients"] if c["pid"] == left.process.pid and c["queues"]],
        "and its context is gone",
    )
    machine.daemon.kill()
    machine.daemon.wait(WAIT_S)
    until(lambda: all(c.is_whole() for c in batch), "given back")
    leaving.group = first
    until(leaving.is_whole, "its first context, too")


LEASE_MS = 200
KILLS = int(os.environ.get("KILLS") or 0)


SHAPES = ("plain", "early", "wide", "two at once", "other forms", "pair", "idle")
SHAPES_ALONE = ("plain", "early", "other forms")


class Crowd:
    """A daemon and programs of several shapes that always have work, killed and stopped at random. Those that are left go on, whoever was killed."""

    def __init__(self, machine, rng):
        self.machine, self.rng = machine, rng
        self.counts, self.waited, self.waited_for, self.late, self.host = {}, 0, "nothing", 0.0, Host(machine)
        self.clients = []
        late = rng.random() < 0.5
        if not late:
            machine.start()
        self.add(*(self.begun(priority) for priority in (80, 20, 20, 20)))
        if late:
            machine.start()

    def begun(self, priority: int) -> Client:
        """A program that starts, of any shape. An urgent one works, or nobody would be held out."""
        shape = self.rng.choice(SHAPES[:-1] if priority == 80 else SHAPES)
        client = Client(self.machine, priority, starts="early" if shape == "early" else None, shape=shape)
        client.priority, client.shape, client.heirs, client.grown = priority, shape, 0, 0
        return client

    def add(self, *clients: Client) -> None:
        """All of them get ready, and work from then on."""
        for client in clients:
            until(client.is_ready, f"a program starts: {client.shape}, {client.priority}")
            count = 2 if client.shape in ("wide", "two at once") else 1
            require(
                client.process.stdout.readline().decode().strip() == f"ok {client.starts_as}",
                f"it has started: {client.shape}",
            )
            client.contexts = range(count)
            client.groups = [client.ask(f"group {number}").removeprefix("ok ") for number in client.contexts]
            client.group = client.groups[0]
            if client.shape == "idle":
                client.contexts = ()
            for number in client.contexts:
                require(client.ask(f"busy {number}") == "ok 0", "it works")
            if client.shape == "pair" and self.clients:
                other = self.rng.choice(self.clients)
                memory = [other.ask(word).removeprefix("ok ") for word in ("client", "memory 0")]
                require(client.ask("open " + " ".join(memory)).startswith("ok"), "they share memory")
            self.host.ask(client)
            self.clients.append(client)

    def done(self, client: Client) -> list[int]:
        return [int(client.ask(f"done {number}").removeprefix("ok ")) for number in client.contexts]

    def has_gone_on(self, client: Client, before: list[int]) -> bool:
        return all(now > then for now, then in zip(self.done(client), before))

    def settle(self, what: str) -> None:
        """Everybody who is left has gone on since, with each of his contexts."""
        before = {client: self.done(client) for client in self.clients}
        until(
            lambda: all(self.has_gone_on(client, before[client]) for client in self.clients), f"all go on after {what}"
        )
        for client in self.clients:
            host = self.host.ask(client)
            for number in client.contexts:
                waited = int(client.ask(f"waited {number}").removeprefix("ok "))
                # Gangs wait for all of their members to be allowed to open.
                if waited - host > self.late and client.shape in SHAPES_ALONE:
                    self.waited, self.waited_for = waited, f"{what}, by {client.shape}, {client.priority}"
                    self.late = waited - host

    def groups(self) -> list[dict]:
        groups = self.machine.groups()
        return [groups[group] for client in self.clients for group in client.groups]

    def is_open(self) -> bool:
        return all(group["disabled"] == 0 for group in self.groups())

    def is_whole(self) -> bool:
        return all(group["disabled"] == 0 and group["slice"] == LONG for group in self.groups())

    def halt(self, clients: list[Client]) -> None:
        for client in clients:
            for number in client.contexts:
                require(client.ask(f"halt {number}") == "ok 1", "each kernel ran once")
            client.contexts = ()

    def pause(self, most: float) -> None:
        time.sleep(self.rng.random() * most)

    # What happens.

    def daemon_killed(self) -> None:
        self.machine.daemon.kill()
        self.machine.daemon.wait(WAIT_S)
        self.pause(0.3)
        self.machine.start()

    def daemon_ended(self) -> None:
        self.machine.daemon.terminate()
        require(self.machine.daemon.wait(WAIT_S) == 0, "the daemon ends well")
        self.machine.start()

    def daemon_stopped(self) -> None:
        self.machine.daemon.send_signal(signal.SIGSTOP)
        self.pause(0.8)
        self.machine.daemon.send_signal(signal.SIGCONT)

    def daemon_absent(self) -> None:
        """Programs start while there is none, and while it starts."""
        self.machine.daemon.kill()
        self.machine.daemon.wait(WAIT_S)
        first = self.begun(20)
        self.pause(0.1)
        self.machine.start(wait=False)
        self.exchange(first, self.begun(20))
        until(self.machine.answers, "the daemon answers")

    def daemon_killed_starting(self) -> None:
        """It is killed again before it answers."""
        self.machine.daemon.kill()
        self.machine.daemon.wait(WAIT_S)
        self.machine.start(wait=False)
        self.pause(0.05)
        self.daemon_killed()

    def remove(self, client: Client) -> None:
        self.clients.remove(client)
        client.end(signal.SIGKILL)
        self.machine.clients.remove(client)

    def exchange(self, *clients: Client) -> None:
        """These start while as many are killed."""
        for client in clients:
            self.remove(self.rng.choice([c for c in self.clients if c.priority == client.priority]))
        self.add(*clients)

    def program_killed(self) -> None:
        client = self.rng.choice(self.clients)
        self.remove(client)
        self.add(self.begun(client.priority))

    def programs_started(self) -> None:
        """Several at once."""
        self.exchange(*(self.begun(priority) for priority in self.rng.choice([(80, 20), (20, 20), (20, 80, 20)])))

    def program_killed_starting(self) -> None:
        client = self.begun(self.rng.choice((20, 50, 80)))
        self.pause(0.2)
        client.end(signal.SIGKILL)
        self.machine.clients.remove(client)

    def program_grown(self) -> None:
        """Channels come to a group while it works, and the group is scheduled again."""
        client = self.rng.choice(self.clients)
        for _ in range(self.rng.randrange(1, 4)):
            client.grown += 1
            if client.grown <= 40:
                require(client.ask("member 0") == "ok 1", "a channel")
            self.pause(0.02)
            require(client.ask("schedule 0") == "ok 0", "it is scheduled")

    def program_forked(self) -> None:
        """A child that ends, makes a context, becomes another program, or outlives its parent with its files."""
        client, way = self.rng.choice(self.clients), self.rng.randrange(4)
        require(client.ask(f"fork {way}") == "ok 0", f"a child, {way}")
        if way == 3:
            self.remove(client)
            self.add(self.begun(client.priority))

    def program_stopped(self) -> None:
        client = self.rng.choice(self.clients)
        client.process.send_signal(signal.SIGSTOP)
        self.pause(0.5)
        client.process.send_signal(signal.SIGCONT)

    def thread_ended(self) -> None:
        """After the third there is no heir: then the program is replaced as well."""
        client = self.rng.choice(self.clients)
        if client.heirs < 3 and client.thread("gpreempt-agent"):
            client.heirs += 1
            end_thread(client, "gpreempt-agent")
        else:
            self.program_killed()

    def guard_ended(self) -> None:
        client = self.rng.choice(self.clients)
        if client.thread("gpreempt-guard"):
            end_thread(client, "gpreempt-guard")

    def one(self) -> None:
        event = self.rng.choice(
            [
                self.daemon_killed,
                self.daemon_ended,
                self.daemon_stopped,
                self.daemon_absent,
                self.daemon_killed_starting,
                self.program_killed,
                self.programs_started,
                self.program_killed_starting,
                self.program_grown,
                self.program_forked,
                self.program_stopped,
                self.thread_ended,
                self.guard_ended,
            ]
        )
        self.pause(self.rng.choice((0.15, 0.15, 1.5)))  # gates are closed about a second after a start
        event()
        self.counts[event.__name__] = self.counts.get(event.__name__, 0) + 1
        self.settle(event.__name__)


def kills_case(_: Machine) -> None:
    """Programs of several shapes start in any order, and everybody is killed and stopped at random: daemon, programs, threads of the agent, while they start as well.
    Survivors go on and run each kernel once; nothing was ever disabled twice; once nothing urgent has work all is open, and after the daemon's death all is open and long.
    KILLS: how many (a few unless told); then the driver is quick, and nothing may be closed for longer than two leases, beside what the host took from agent and daemon.
    """
    seed = int(os.environ.get("SEED") or 1)
    print(f"seed {seed}", flush=True)
    rng = random.Random(seed)
    protect, slow_us = rng.choice(("latency", "balanced", "throughput")), rng.choice((0, 0, 2000))
    slow_us = 0 if KILLS else slow_us
    machine = Machine(config=f"[policy]\nturn = 10ms\nage_window = 20ms\nprotect = {protect}\n")
    machine.lease, machine.rest = f"{LEASE_MS}ms", "300ms"
    machine.look("keeps", rng.randrange(2))
    machine.look("slow", slow_us)
    try:
        crowd = Crowd(machine, rng)
        for number in range(KILLS or 9):
            crowd.one()
            if number % 50 == 49:
                print(f"{number + 1} of {KILLS}; waited {crowd.waited} ms at most", flush=True)
        crowd.halt([client for client in crowd.clients if client.priority > 20])
        until(crowd.is_open, "nothing urgent has work: all are open")  # slices wait for somebody who would gain
        crowd.settle("that")
        machine.daemon.kill()
        machine.daemon.wait(WAIT_S)
        until(crowd.is_whole, "all are open and long")
        crowd.halt(crowd.clients)
        most = machine.look("show")["disabled_most"]
        print(
            f"{MECHANISM}, seed {seed}: {sum(crowd.counts.values())} kills, {crowd.counts}; {crowd.waited} ms closed at most, {crowd.late:.0f} without what the host took ({crowd.waited_for}); a channel disabled {most} times at most",
            flush=True,
        )
        require(most <= 1, "a channel was disabled twice")
        require(
            not KILLS or crowd.late <= 2 * LEASE_MS,
            f"a program was held out for {crowd.late:.0f} ms, beside what the host took from agent and daemon: {crowd.waited_for}",
        )
    except Exception:
        print(machine.log.read_text(), file=sys.stderr)
        raise
    finally:
        machine.end()


CASES = {"starts": starts_case, "guard": guard_case, "left": left_case, "kills": kills_case}
