# SPDX-License-Identifier: MIT
"""The cases of test/e2e/sched: what each shows is said at its head."""
from stage import Stage, Trouble

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def must(good, what):
    if not good:
        raise Trouble(what)


def exact(*programs):
    """Each ended well and found its results exact, and the node saw every workgroup run exactly once."""
    for program in programs:
        status = program.wait()
        must(status == 0, "%s ended with status %d; %s" % (program.name, status, program.tail()))
        must(program.result()["wrong"] == 0, program.tail())
    for stage in {program.stage for program in programs}:
        must(stage.node()["total"]["violations"] == 0, "the node saw a workgroup that did not run exactly once")


@case
def alone(build):
    """Requests that overlap, on a device that is slow against the host: barriers are released before the packet processor has come to them."""
    with Stage(build, dilation=20) as stage:
        exact(stage.serve(rate=60, requests=150))


@case
def stock(build):
    """Without a daemon: both programs give exact results beside each other."""
    with Stage(build, dilation=5) as stage:
        train = stage.train(iterations=40)
        train.wait_line("ready")
        exact(stage.serve(rate=10, requests=20), train)
