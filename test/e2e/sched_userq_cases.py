# SPDX-License-Identifier: MIT
"""More cases of test/e2e/sched: HIP programs that make their queues through DRM instead of KFD."""
import os
import subprocess
from typing import Any

from sched_cases import AGELESS, ENDLESS, Skipped, Stage, case, end_exact, managed, must, wait_progress
from stage import wait_for


def through_drm(stage: Stage) -> dict[str, str]:
    """The environment in which a program's compute queues are user queues of DRM."""
    library = os.path.join(stage.build, "test", "e2e", "libdrm-queues.so")
    if not os.path.exists(library):
        raise Skipped("libdrm-queues.so was not built")
    return {"LD_PRELOAD": library, "HSA_ENABLE_DRM_DEBUG": "1"}


def compute(client: dict[str, Any]) -> list[dict[str, Any]]:
    return [queue for queue in client["queues"] if queue["kind"] == "compute"]


@case
def userq(build: str) -> None:
    """A trainer whose queues are user queues of DRM: KFD does not know them; status, doctor and run say what cannot be done; while an urgent service works, what the trainer
    submits is held back; both are exact. A service with such queues goes before a trainer of the other kind."""
    with Stage(build, dilation=5) as stage:
        stage.daemon(AGELESS)
        train = stage.train(["-p", "20"], extra=through_drm(stage))
        train.wait_line("ready")
        serve = stage.serve(["-p", "80"], closed=0.05, seconds=ENDLESS)
        client = stage.client(train, managed(stage, train, serve))
        must(
            client["mechanism"] == "userq" and "through DRM" in client["mechanism_why"],
            "the client's mechanism: %s" % client,
        )
        must(
            all(queue["queue_id"] >= 0x100000 for queue in compute(client)),
            "the queues are DRM's: %s" % compute(client),
        )
        must("through DRM" in train.output(), "run says so: " + train.output())
        must(
            "make their queues through DRM: train (" in stage.ask("doctor", check=False).stdout,
            "doctor says so: " + stage.ask("doctor", check=False).stdout,
        )
        must("userq" in stage.ask("status").stdout, "status says so: " + stage.ask("status").stdout)
        must(stage.client(serve)["mechanism"] != "userq", "the other one is as always")
        folders = [
            subprocess.run(
                stage.on_node(["ls", "/sys/class/kfd/kfd/proc/%d/queues" % program.pid()]),
                capture_output=True,
                text=True,
                check=True,
                env=stage.environment(),
            ).stdout.split()
            for program in (train, serve)
        ]
        must(
            len(folders[0]) == len(client["queues"]) - len(compute(client)) and len(folders[1]) > len(folders[0]),
            "what KFD lists: %s" % folders,
        )
        wait_for(
            "what it submits is held back, and let through",
            lambda: all(any(queue[what] > 2 for queue in compute(stage.client(train))) for what in ("closes", "opens")),
        )
        wait_progress(stage, train)
        end_exact(serve)
        other = stage.train(["-p", "20"])
        other.wait_line("ready")
        urgent = stage.serve(["-p", "80"], closed=0.05, seconds=ENDLESS, extra=through_drm(stage))
        managed(stage, other, urgent)
        before = sum(queue["closes"] for queue in compute(stage.client(other)))
        wait_for(
            "the other trainer is closed for it",
            lambda: sum(queue["closes"] for queue in compute(stage.client(other))) > before + 2,
        )
        must(
            stage.client(urgent)["mechanism"] == "userq", "the urgent one's queues are DRM's: %s" % stage.client(urgent)
        )
        wait_progress(stage, other)
        end_exact(urgent, train, other)
