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


def delays(pid, names):
    """Milliseconds for which threads of a process have waited for a processor since they began, by their numbers. names: None: all threads."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            if names is None or (task / "comm").read_text().strip() in names:
                found[int(task.name)] = int((task / "schedstat").read_text().split()[1]) / 1e6
        except (OSError, IndexError):
            pass
    return found


def stolen():
    """Milliseconds that the host of a virtual machine took from each processor, by /proc/stat (a tick is 10 ms)."""
    lines = [line.split() for line in pathlib.Path("/proc/stat").read_text().splitlines()]
    return {words[0]: int(words[8]) * 10.0 for words in lines if re.match(r"cpu\d", words[0])}


class Host:
    """For how long, since it was last asked, those who open a program's gates were ready and did not run: the threads of the daemon, which hand work to each
    other, and the agent's, of which the one that waited longest counts. A thread that has ended in between excuses nothing.
    """

    def __init__(self):
        self.before = {}

    def since(self, key, now):
        before = self.before.get(key, {})
        self.before[key] = now
        return [value - before.get(name, 0.0) for name, value in now.items()]

    def ask(self, machine, client):
        agent = self.since(client, delays(client.process.pid, ("gpreempt-agent", "gpreempt-guard")))
        daemon = self.since((client, machine.daemon.pid), delays(machine.daemon.pid, None))
        host = self.since((client, "stolen"), stolen())
        return max(agent, default=0.0) + sum(daemon) + max(host, default=0.0)


class Crowd:
    """A daemon and programs that always have work, killed and stopped at random. Those that are left go on, whoever was killed."""

    def __init__(self, machine, rng):
        self.machine, self.rng = machine, rng
        self.counts, self.waited, self.late, self.host = {}, 0, 0.0, Host()
        self.clients = []
        machine.start()
        for priority in (80, 20, 20, 20):
            self.add(priority)

    def add(self, priority: int) -> None:
        client = Client(self.machine, priority, starts=True)
        client.priority, client.heirs = priority, 0
        until(client.is_ready, "a program starts")
        require(client.process.stdout.readline().decode().strip() == "ok 0", "it has started")
        client.group = client.ask("group 0").removeprefix("ok ")
        require(client.ask("busy 0") == "ok 0", "it works")
        self.host.ask(self.machine, client)
        self.clients.append(client)

    def done(self, client: Client) -> int:
        return int(client.ask("done").removeprefix("ok "))

    def settle(self, what: str) -> None:
        """Everybody who is left has gone on since."""
        before = {client: self.done(client) for client in self.clients}
        until(lambda: all(self.done(client) > before[client] for client in self.clients), f"all go on after {what}")
        for client in self.clients:
            waited = int(client.ask("waited").removeprefix("ok "))
            self.waited = max(self.waited, waited)
            self.late = max(self.late, waited - self.host.ask(self.machine, client))

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

    def daemon_killed_starting(self) -> None:
        """It is killed again before it answers."""
        self.machine.daemon.kill()
        self.machine.daemon.wait(WAIT_S)
        self.machine.start(wait=False)
        self.pause(0.05)
        self.daemon_killed()

    def program_killed(self) -> None:
        client = self.clients.pop(self.rng.randrange(len(self.clients)))
        client.end(signal.SIGKILL)
        self.machine.clients.remove(client)
        self.add(client.priority)

    def program_killed_starting(self) -> None:
        client = Client(self.machine, self.rng.choice((20, 50, 80)), starts=True)
        self.pause(0.2)
        client.end(signal.SIGKILL)
        self.machine.clients.remove(client)

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
                self.daemon_killed_starting,
                self.program_killed,
                self.program_killed_starting,
                self.program_stopped,
                self.thread_ended,
                self.guard_ended,
            ]
        )
        self.pause(0.15)
        event()
        self.counts[event.__name__] = self.counts.get(event.__name__, 0) + 1
        self.settle(event.__name__)


def kills_case(_: Machine) -> None:
    """Everybody is killed and stopped at random: daemon, programs, threads of the agent, while they start as well. Survivors go on and run each kernel once;
    at the end all is open and long, and nothing was ever disabled twice. KILLS: how many (a few unless told); then nothing may be closed for longer than two leases.
    """
    seed = int(os.environ.get("SEED") or 1)
    print(f"seed {seed}", flush=True)
    machine = Machine(config="[policy]\nturn = 10ms\nage_window = 20ms\n")
    machine.lease = f"{LEASE_MS}ms"
    try:
        crowd = Crowd(machine, random.Random(seed))
        for number in range(KILLS or 9):
            crowd.one()
            if number % 50 == 49:
                print(f"{number + 1} of {KILLS}; waited {crowd.waited} ms at most", flush=True)
        machine.daemon.kill()
        machine.daemon.wait(WAIT_S)
        until(lambda: all(c.is_whole() for c in crowd.clients), "all are open and long")
        require(all(client.ask("halt") == "ok 1" for client in crowd.clients), "each kernel ran once")
        most = machine.look("show")["disabled_most"]
        print(
            f"{MECHANISM}, seed {seed}: {sum(crowd.counts.values())} kills, {crowd.counts}; {crowd.waited} ms closed at most, {crowd.late:.0f} without what the host took; a channel disabled {most} times at most",
            flush=True,
        )
        require(most <= 1, "a channel was disabled twice")
        require(
            not KILLS or crowd.late <= 2 * LEASE_MS,
            f"a program was held out for {crowd.late:.0f} ms, beside what the host took from agent and daemon",
        )
    except Exception:
        print(machine.log.read_text(), file=sys.stderr)
        raise
    finally:
        machine.end()


CASES = {"starts": starts_case, "guard": guard_case, "left": left_case, "kills": kills_case}
