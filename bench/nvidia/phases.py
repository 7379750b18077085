# SPDX-License-Identifier: MIT
"""Options that all urgent programs of the benchmark have in common: {--phase NAME --mode M --requests N --period-us N --phase-seconds N}..., as hp has them."""
from __future__ import annotations

import argparse
import os
from collections.abc import Sequence


class PhaseOption(argparse.Action):
    """--phase begins one; what follows is its own."""

    def __call__(self, parser, namespace, value, option_string=None):
        if self.dest == "phase":
            namespace.phases = [
                *namespace.phases,
                {
                    "name": value,
                    "mode": parser.get_default("phase_mode"),
                    "requests": 100,
                    "period_us": 20000.0,
                    "seconds": 60.0,
                },
            ]
        elif not namespace.phases:
            parser.error("%s belongs behind a --phase" % option_string)
        else:
            namespace.phases[-1][self.dest] = value


def add(parser: argparse.ArgumentParser, modes: Sequence[str], mode: str) -> None:
    """The options of a program that is measured; mode: of a phase that names none."""
    parser.set_defaults(phases=[], phase_mode=mode)
    parser.add_argument("--json", default=os.devnull)
    parser.add_argument("--go")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="sizes for a machine without a GPU")
    parser.add_argument("--phase", action=PhaseOption)
    parser.add_argument("--mode", action=PhaseOption, choices=modes)
    parser.add_argument("--requests", action=PhaseOption, type=int)
    parser.add_argument("--period-us", action=PhaseOption, type=float)
    parser.add_argument("--phase-seconds", action=PhaseOption, dest="seconds", type=float)
