# SPDX-License-Identifier: MIT
"""For how long those who open a program's gates were ready and did not run. Started as a program, it checks its own arithmetic."""
import collections
import pathlib
import re
import threading
import time
import typing

if typing.TYPE_CHECKING:
    from machine import Client, Machine

PERIOD_S = 0.01  # what waits at the same time within so long is told apart no further
KEPT_S = 30.0

Totals = dict[object, dict[typing.Any, float]]  # by source: milliseconds of each of its threads or processors so far


class Moment(typing.NamedTuple):
    """What each source had in all, at a time in milliseconds."""

    at: float
    totals: Totals


def delays(pid: int, names: tuple[str, ...] | None) -> dict[int, float]:
    """Milliseconds for which threads of a process have waited for a processor since they began, by their numbers. names: None: all threads."""
    found = {}
    try:
        tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it has ended
        tasks = []
    for task in tasks:
        try:
            if names is None or (task / "comm").read_text().strip() in names:
                found[int(task.name)] = int((task / "schedstat").read_text().split()[1]) / 1e6
        except (OSError, IndexError):
            pass
    return found


def stolen() -> dict[str, float]:
    """Milliseconds that the host of a virtual machine took from each processor, by /proc/stat (a tick is 10 ms)."""
    lines = [line.split() for line in pathlib.Path("/proc/stat").read_text().splitlines()]
    return {words[0]: int(words[8]) * 10.0 for words in lines if re.match(r"cpu\d", words[0])}


def spread(moments: list[Moment], first: int, source: object) -> list[list[float]]:
    """The waits of a source's threads that ended after the first moment, a list for each thread, by the gaps between moments. The kernel
    counts a wait when it ends, so it lies before that."""
    lengths = [after.at - before.at for before, after in zip(moments, moments[1:])]
    threads: dict[typing.Any, list[float]] = {}
    for gap in range(first, len(lengths)):
        before = moments[gap].totals.get(source, {})
        for name, total in moments[gap + 1].totals.get(source, {}).items():
            waits = threads.setdefault(name, [0.0] * len(lengths))
            left = total - before.get(name, 0.0)
            for place in range(gap, -1, -1):
                part = min(left, lengths[place] - waits[place])
                waits[place] += part
                left -= part
                if left <= 0:
                    break
    return list(threads.values())


def waited(moments: list[Moment], first: int, sources: dict[object, typing.Callable]) -> float:
    """Milliseconds. Those of a source count by its function, sum or max; all together never for more than the time that passed."""
    total = 0.0
    found = {source: spread(moments, first, source) for source in sources}
    for gap, (before, after) in enumerate(zip(moments, moments[1:])):
        parts = (count([waits[gap] for waits in found[source]] or [0.0]) for source, count in sources.items())
        total += min(after.at - before.at, sum(parts))
    return total


class Host:
    """Looks all the time. ask(): for how long, since it was last asked, those who open a program's gates were ready and did not run: the threads of the daemon, which
    hand work to each other, and the agent's, of which the one that waited longest counts. Who waits at the same time counts once. A thread that has ended in between excuses
    nothing."""

    def __init__(self, machine: "Machine"):
        self.machine = machine
        self.moments: collections.deque[Moment] = collections.deque()
        self.asked: dict[object, float] = {}
        self.lock = threading.Lock()
        threading.Thread(target=self.look_on, daemon=True).start()

    def look(self) -> None:
        with self.lock:
            totals: Totals = {"stolen": stolen()}
            for client in list(self.machine.clients):
                totals[client] = delays(client.process.pid, ("gpreempt-agent", "gpreempt-guard"))
            daemon = self.machine.daemon
            if daemon:
                totals["daemon"] = {(daemon.pid, thread): ms for thread, ms in delays(daemon.pid, None).items()}
            self.moments.append(Moment(time.monotonic() * 1e3, totals))
            while self.moments[-1].at - self.moments[0].at > KEPT_S * 1e3:
                self.moments.popleft()

    def look_on(self) -> None:
        while True:
            self.look()
            time.sleep(PERIOD_S)

    def ask(self, client: "Client") -> float:
        self.look()
        with self.lock:
            moments = list(self.moments)
        since = self.asked.get(client, moments[0].at)
        self.asked[client] = moments[-1].at
        first = next(place for place, moment in enumerate(moments) if moment.at >= since)
        return waited(moments, first, {client: max, "daemon": sum, "stolen": max})


def check() -> None:
    """Two gaps of 10 ms and one of 100 ms."""

    def moments(*totals: dict[str, float]) -> list[Moment]:
        return [Moment(at, {"one": dict(now)}) for at, now in zip((0, 10, 20, 120), totals)]

    for what, seen, first, count, expected in (
        ("nobody", moments({}, {}, {}, {}), 0, sum, 0),
        ("one after the other", moments({"a": 0, "b": 0}, {"a": 4, "b": 0}, {"a": 4, "b": 5}), 0, sum, 9),
        ("at the same time", moments({"a": 0, "b": 0}, {"a": 0, "b": 0}, {"a": 20, "b": 20}), 0, sum, 20),
        ("in one gap", moments({"a": 0, "b": 0}, {"a": 6, "b": 7}), 0, sum, 10),
        ("the longest", moments({"a": 0, "b": 0}, {"a": 3, "b": 7}), 0, max, 7),
        ("before the question", moments({"a": 0}, {"a": 10}, {"a": 13}), 1, sum, 3),
        ("over the question", moments({"a": 0}, {"a": 0}, {"a": 15}), 1, sum, 15),
        ("a new thread", moments({}, {}, {"a": 7}), 1, sum, 7),
        ("a thread that ended", moments({"a": 5}, {}, {}), 0, sum, 0),
        ("a long gap", moments({"a": 0}, {"a": 0}, {"a": 0}, {"a": 60}), 0, sum, 60),
    ):
        got = waited(seen, first, {"one": count})
        if got != expected:
            raise SystemExit(f"{what}: {got} ms instead of {expected}")
    print("10 sums are right")


if __name__ == "__main__":
    check()
