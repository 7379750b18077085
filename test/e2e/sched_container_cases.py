# SPDX-License-Identifier: MIT
"""More cases of test/e2e/sched: programs in cgroups and in the shape of containers. Cgroups are made by hand, as a kubelet or Slurm makes them."""
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator

from sched_cases import FAST, Skipped, Stage, case, end_exact, managed, must, wait_progress, wait_shut
from stage import PATIENCE, Program, wait_for


def cgroup_root() -> str:
    """Where a hierarchy is mounted in which root makes groups: the unified one, or one of the older ones."""
    with open("/proc/mounts", encoding="utf-8") as file:
        mounts = [line.split() for line in file]
    for kinds in (("cgroup2",), ("cgroup",)):
        for mount in mounts:
            if (
                mount[2] in kinds
                and os.access(mount[1], os.W_OK)
                and ("cgroup2" in kinds or "name=systemd" in mount[3] or "freezer" in mount[3])
            ):
                return mount[1]
    raise Skipped("no cgroup hierarchy is mounted writable")


class Group:
    """A cgroup below one of this test's own."""

    def __init__(self, root, path):
        self.path, self.folder = path, root + path
        os.makedirs(self.folder, exist_ok=True)

    def enter(self, argv: list[str]) -> list[str]:
        """The command, from inside."""
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', self.folder, *argv]


@contextlib.contextmanager
def groups(*names: str) -> Iterator[list[Group]]:
    root, top = cgroup_root(), "/gpreempt-cgroups-%d" % os.getpid()
    try:
        os.mkdir(root + top)
    except OSError as error:
        raise Skipped("cannot make a cgroup: %s" % error) from error
    try:
        yield [Group(root, top + name) for name in names]
    finally:
        # A process that was ended leaves its group a moment later.
        def removed():
            for folder, _, _ in os.walk(root + top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            return not os.path.isdir(root + top)

        wait_for("the cgroups are empty", removed)


def preloaded(stage: Stage, argv: list[str]) -> list[str]:
    """The command where /etc/ld.so.preload names the agent and /run/gpreempt has the socket, and no variable says anything: as CDI makes it."""
    etc = stage.file("etc")
    os.makedirs(etc, exist_ok=True)
    with open(os.path.join(etc, "ld.so.preload"), "w", encoding="utf-8") as file:
        file.write(os.path.join(stage.build, "agent", "libgpreempt-agent.so") + "\n")
    script = (
        'mount -t overlay overlay -o lowerdir="$0":/etc /etc && mount -t tmpfs tmpfs /run && mkdir /run/gpreempt && '
        'ln -s "$1" /run/gpreempt/gpreempt.sock && shift && exec env -u GPREEMPT_SOCKET -u GPREEMPT_WAIT "$@"'
    )
    return ["unshare", "-m", "sh", "-c", script, etc, stage.socket, *argv]


def can_preload(stage: Stage) -> bool:
    done = subprocess.run(
        preloaded(stage, ["grep", "-c", "libgpreempt-agent", "/proc/self/maps"]),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    return done.returncode == 0


def start(stage: Stage, argv: list[str], name: str) -> Program:
    path = stage.file("%s-%d.json" % (name, stage.count + 1))
    return stage.start([*argv, stage.program_path("train"), "--json", path], name, path)


@case
def cgroup_rules(build: str) -> None:
    """Pods by the cgroups that a kubelet makes: each has its priority, ceiling, gang and tag, with no environment variable, the agent by ld.so.preload."""
    slices = "/kubepods.slice/kubepods-%s.slice/kubepods-%s-pod11111111_2222_3333_4444_555555555555.slice/cri-containerd-abc.scope"
    with groups(slices % ("besteffort", "besteffort"), slices % ("burstable", "burstable")) as (low, high), Stage(
        build, dilation=FAST
    ) as stage:
        if not can_preload(stage):
            raise Skipped("overlayfs cannot be mounted over /etc here")
        pods = low.path.partition("/kubepods.slice")[0] + "/kubepods.slice"
        stage.daemon(
            {
                "cgroup." + pods + "/kubepods-besteffort.slice": "priority idle, ceiling low",
                "cgroup." + pods + "/kubepods-*.slice/*": "tag %c",
                "cgroup." + pods + "/kubepods-burstable.slice": "priority high, gang pods",
            }
        )
        patient = start(stage, low.enter(preloaded(stage, [])), "patient")
        patient.wait_line("ready")
        urgent = start(stage, high.enter(preloaded(stage, [])), "urgent")
        urgent.wait_line("ready")
        status = managed(stage, patient, urgent)
        one, other = stage.client(patient, status), stage.client(urgent, status)
        must((one["priority"], one["ceiling"], one["gang"]) == (0, 20, None), "the patient one: %s" % one)
        must((other["priority"], other["gang"]) == (80, "pods"), "the urgent one: %s" % other)
        must(
            one["tag"].startswith("kubepods-besteffort-pod1") or one["tag"].endswith("555555555555.slice"),
            "its tag: %s" % one["tag"],
        )
        must(one["cgroup"] == low.path, "its cgroup: %s" % one["cgroup"])
        wait_shut(stage, patient)
        end_exact(urgent)
        # What a program asks for itself is cut to the rule's ceiling, though it is root's.
        asks = start(stage, low.enter([stage.gpreempt(), "run", "-p", "99", "--"]), "asks")
        asks.wait_line("ready")
        client = stage.client(asks, managed(stage, asks))
        must(client["priority"] == 20, "it asked for 99 under a ceiling of 20: %s" % client)
        end_exact(asks)
        end_exact(patient)


@case
def grants(build: str) -> None:
    """What root grants to a job's cgroup, before the job is there, holds for a user's program, over a killed daemon, and no longer than it is granted."""
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if subprocess.run([*nobody, "test", "-x", os.path.join(build, "cli", "gpreempt-run")], check=False).returncode:
        raise Skipped("nobody cannot reach the build folder")
    with groups("/slurm/uid_65534/job_42") as (job,), Stage(build, dilation=FAST) as stage:
        stage.daemon()
        os.chmod(stage.folder, 0o777)
        stage.ask("grant", "add", "-p", "high", "--ceiling", "85", "--tag", "job_42", job.path)
        his = start(stage, job.enter([*nobody, stage.gpreempt(), "run", "--"]), "his")
        his.wait_line("ready")
        client = stage.client(his, managed(stage, his))
        must(
            (client["uid"], client["priority"], client["ceiling"], client["tag"]) == (65534, 80, 85, "job_42"),
            "granted: %s" % client,
        )
        refused = subprocess.run(
            stage.on_node([*nobody, stage.gpreempt(), "set", "-p", "86", str(his.pid())]),
            capture_output=True,
            text=True,
            check=False,
            env=stage.environment(),
            timeout=PATIENCE,
        )
        must(refused.returncode == 1 and "85" in refused.stderr, "above what was granted: %s" % refused)
        # A process that root sets, one that uses no GPU yet, and the daemon is killed.
        other = start(stage, [*nobody, stage.gpreempt(), "run", "-p", "20", "--"], "other")
        other.wait_line("ready")
        managed(stage, other)
        stage.ask("set", "-p", "77", str(other.pid()))
        later = subprocess.Popen(["sleep", "1000"])
        try:
            said = stage.ask("set", "-p", "66", str(later.pid)).stdout
            must("no GPU yet" in said, said)
            stage.daemons[-1].signal(signal.SIGKILL)
            stage.daemons[-1].wait()
            stage.daemon()
            status = managed(stage, his, other)
            must(stage.client(his, status)["priority"] == 80, "after a restart: %s" % stage.client(his, status))
            must(
                stage.client(other, status)["priority"] == 77,
                "what root set, after a restart: %s" % stage.client(other, status),
            )
            listed = json.loads(stage.ask("grant", "list", "--json").stdout)["grants"]
            must(
                {(g["cgroup"], g["pid"]) for g in listed} == {(job.path, None), (None, other.pid()), (None, later.pid)},
                "listed: %s" % listed,
            )
        finally:
            later.kill()
            later.wait()
        wait_for(
            "the grant ends with its process",
            lambda: len(json.loads(stage.ask("grant", "list", "--json").stdout)["grants"]) == 2,
        )
        stage.ask("grant", "remove", job.path)
        must(stage.client(his)["priority"] == 50, "after the grant was taken: %s" % stage.client(his))
        end_exact(other)
        end_exact(his)


@case
def accounts(build: str) -> None:
    """What a job got is told after it ended: by client, by job, in the events with pid and name, and in the journal."""
    with groups("/slurm/job_7") as (job,), Stage(build, dilation=FAST) as stage:
        daemon = stage.daemon({"cgroup." + job.path: "priority low, tag %c"})
        low = start(stage, job.enter([stage.gpreempt(), "run", "--"]), "low")
        low.wait_line("ready")
        managed(stage, low)
        serve = stage.serve(["-p", "80"], closed=0.02, requests=20)
        serve.wait_line("ready")
        pids = (low.pid(), managed(stage, serve) and serve.pid())
        must(serve.wait() == 0, serve.tail())
        end_exact(low)

        def told():
            rows = json.loads(stage.ask("account", "--json").stdout)["rows"]
            return {r["pid"]: r for r in rows} if rows and all(r["ended_unix_ns"] for r in rows) else None

        rows = wait_for("both have ended", told)
        must(set(rows) == set(pids), "accounts: %s" % rows)
        must(
            rows[pids[0]]["tag"] == "job_7" and rows[pids[0]]["compute_ns"] > 0 and rows[pids[0]]["preemptions"] > 0,
            "low: %s" % rows[pids[0]],
        )
        must(rows[pids[1]]["name"] == "serve" and rows[pids[1]]["compute_ns"] > 0, "serve: %s" % rows[pids[1]])
        by_job = json.loads(stage.ask("account", "--by", "job", "--json").stdout)["rows"]
        must({r["tag"] for r in by_job} == {"job_7", ""}, "by job: %s" % by_job)
        must(next(r for r in by_job if r["tag"])["compute_ns"] == rows[pids[0]]["compute_ns"], "by job: %s" % by_job)
        must(not json.loads(stage.ask("account", "--tag", "job_8", "--json").stdout)["rows"], "another job's")
        table = stage.ask("account", "--since", "1h").stdout
        must("job_7" in table and " %d " % pids[0] in table, "the table: " + table)
        events = [json.loads(line) for line in stage.ask("events", "--json").stdout.splitlines()]
        of_queues = [
            e for e in events if e["event"] in ("queue-add", "queue-remove", "busy", "idle", "closed", "opened")
        ]
        must(
            of_queues and all(e["pid"] in pids and e["name"] for e in of_queues),
            "events without a name: %s" % of_queues,
        )
        must({e["pid"] for e in events if e["event"] == "ended"} == set(pids), "events of the end")
        must("account: uid 0, process %d" % pids[0] in daemon.output(), daemon.tail())


@case
def guaranteed_shares(build: str) -> None:
    """A program with a guaranteed share goes on beside urgent work that never ends, again and again, because of its share; one without does not."""
    with Stage(build, dilation=FAST) as stage:
        stage.daemon({"policy.age_window": "1h"})
        promised = stage.train(["-p", "10", "--share", "30%"], "promised")
        other = stage.train(["-p", "10"], "other")
        for program in (promised, other):
            program.wait_line("ready")
        urgent = stage.train(["-p", "90"], "urgent")
        urgent.wait_line("ready")
        status = managed(stage, urgent, promised, other)
        must(stage.client(promised, status)["share_permille"] == 300, "its share: %s" % stage.client(promised, status))
        wait_shut(stage, other)
        for _ in range(3):
            wait_progress(stage, promised)
            wait_progress(stage, urgent)
        events = [json.loads(line) for line in stage.ask("events", "--json").stdout.splitlines()]
        opened = {e["pid"] for e in events if e["event"] == "open" and e["why"] and "guaranteed share" in e["why"]}
        must(opened == {promised.pid()}, "opened for a share: %s" % opened)
        end_exact(urgent)
        end_exact(promised)
        end_exact(other)


WEAK = ["setpriv", "--bounding-set", "-sys_admin,-sys_nice", "--inh-caps", "-sys_admin,-sys_nice"]
SHAPES = {
    "few capabilities": [*WEAK],
    "PID namespace": ["unshare", "-pf", "--kill-child", *WEAK],
    "user namespace": ["unshare", "-Ur"],
    "user and PID namespace": ["unshare", "-Urpf", "--kill-child"],
}


@case
def containers(build: str) -> None:
    """A container's root cannot pause, cannot raise, and sees nobody's programs but its own; with the capability on the host it can."""
    with Stage(build, dilation=FAST) as stage:
        stage.daemon({"ceiling.default": "50"})
        train = stage.train(["-p", "30"])
        train.wait_line("ready")
        managed(stage, train)

        def ask(shape, *argv):
            return subprocess.run(
                stage.on_node([*shape, stage.gpreempt(), *argv]),
                capture_output=True,
                text=True,
                check=False,
                env=stage.environment(),
                timeout=PATIENCE,
            )

        for name, shape in SHAPES.items():
            if subprocess.run([*shape, "true"], capture_output=True, check=False).returncode:
                print("left out: %s" % name)
                continue
            must(ask(shape, "pause", "all").returncode == 1, "%s: pause" % name)
            must(ask(shape, "grant", "add", "-p", "90", "/x").returncode == 1, "%s: grant" % name)
            must(ask(shape, "set", "-p", "1", str(train.pid())).returncode == 1, "%s: set" % name)
            seen = json.loads(ask(shape, "status", "--json").stdout)["clients"]
            must(seen and all(c.get("hidden") for c in seen), "%s sees %s" % (name, seen))
            inside = start(stage, [*shape, stage.gpreempt(), "run", "-p", "99", "--"], "inside")
            inside.wait_line("ready")
            client = wait_for(
                "its agent reports",
                lambda: next((c for c in stage.status()["clients"] if c["pid"] != train.pid() and c["queues"]), None),
            )
            must((client["priority"], client["ceiling"], client["uid"]) == (50, 50, 0), "%s has %s" % (name, client))
            os.kill(client["pid"], signal.SIGTERM)
            must(inside.wait() == 0, inside.tail())
        must(not stage.status()["devices"][0]["stopped"], "somebody stopped the device")
        must(stage.client(train)["priority"] == 30, "somebody changed it")
        for shape in ([], ["unshare", "-pf", "--kill-child"]):
            must(
                ask(shape, "pause", "all").returncode == 0 and ask(shape, "resume", "all").returncode == 0,
                "with the capability: %s" % shape,
            )
            must(
                any(c.get("pid") == train.pid() for c in json.loads(ask(shape, "status", "--json").stdout)["clients"]),
                "with the capability it sees all",
            )
        end_exact(train)
