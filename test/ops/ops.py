# SPDX-License-Identifier: MIT
"""What the cases of test/ops share: a Debian 12 with a real systemd on a virtual node (tools/ops), the packages in it, programs of the demo.

A case is a program `test/ops/NAME BUILD` that calls run(NAME, function); the function gets an Ops. It ends with status 0 or 1.
"""
import json
import os
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "test", "e2e"))
from stage import PATIENCE, Stage, Trouble, missing, wait_for  # noqa: E402, F401
from systemd_system import System, must  # noqa: E402


class Ops(System):
    """A system of a case."""

    def __init__(self, stage, lower, debs, **options):
        super().__init__(stage, lower=lower, binds=[ROOT, stage.build, debs, lower], **options)
        self.debs = debs
        # The unit's own times pass where the machine stands still, or has no time for a test.
        self.write(
            "/run/systemd/system/gpreemptd.service.d/50-test.conf",
            "[Service]\nWatchdogSec=300s\nTimeoutStartSec=600s\n",
        )

    def install(self, *names: str) -> Any:
        """Packages of the tree."""
        return self.shell(
            "export DEBIAN_FRONTEND=noninteractive; apt-get install -y --no-install-recommends %s"
            % " ".join("%s/%s_*.deb" % (self.debs, name) for name in names),
            seconds=PATIENCE,
        )

    def demo(self, name: str) -> str:
        return os.path.join(self.stage.build, "demo", name)

    def results(self, path: str) -> Any:
        return json.loads(self.read(path))

    def clients(self) -> list[dict]:
        return self.answer()["clients"]

    def guide(self, name: str) -> list[tuple[int, str]]:
        """The commands of a guide, block by block: [(line, script)]. Blocks marked sh are run, those marked console are not."""
        with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as file:
            text = file.read()
        blocks = [
            (text[: match.start()].count("\n") + 1, match.group(1))
            for match in re.finditer(r"^```sh\n(.*?)^```$", text, re.M | re.S)
        ]
        must(blocks, "%s has no commands" % name)
        return blocks


def run(name: str, case: Callable[[Ops], None], has_node: bool = True, **options: Any) -> None:
    """Runs a case as a program."""
    if len(sys.argv) != 2:
        print("usage: test/ops/%s BUILD (tools/ops gives it the system and the packages)" % name)
        sys.exit(2)
    build = os.path.abspath(sys.argv[1])
    why = missing(build)
    lower, debs = os.environ.get("GPREEMPT_OPS_LOWER"), os.environ.get("GPREEMPT_OPS_DEBS")
    if not lower or not debs:
        why = "GPREEMPT_OPS_LOWER and GPREEMPT_OPS_DEBS are not set; run it by tools/ops"
    if why:
        print("%s: failed: %s" % (name, why))
        sys.exit(1)
    options.setdefault("dilation", 5)
    try:
        with Stage(build, name="ops-%d" % os.getpid(), **options) as stage:
            system = Ops(stage, lower, debs, has_node=has_node)
            try:
                case(system)
            except BaseException:
                if os.environ.get("GPREEMPT_OPS_STOP"):  # for looking around: nsenter -t PID -a
                    traceback.print_exc()
                    input("pid %d; Enter ends it " % system.first)
                raise
            finally:
                system.close()
            must(
                not os.path.isdir(system.group),
                "the cgroup %s is not empty: something of the system is left" % system.group,
            )
    except Trouble as trouble:
        print("%s: failed: %s" % (name, trouble))
        sys.exit(1)
    print("%s: ok" % name)
    sys.exit(0)
