"""What a profiled job does without being profiled: the functions that were replaced in it, put back for a while."""

import resource
import sys
from contextlib import contextmanager


class Turn:
    """A turn of ``steps`` steps; after it, ``faults`` says how many page faults the process took in it."""

    def __init__(self, steps):
        self.steps = steps
        self.faults = -taken()


def taken():
    """Return how many page faults without I/O this process has taken."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@contextmanager
def turn(line):
    """Read a line of STEPS, or STEPS and `bare`; in a bare turn the hooks are out. Yield a Turn."""
    steps, *words = line.split()
    with bare("bare" in words):
        run = Turn(int(steps))
        try:
            yield run
        finally:
            run.faults += taken()


@contextmanager
def bare(out):
    """Take the hooks out for a while if ``out``."""
    core = sys.modules.get("_tfprof.shim.core")
    replaced = core.state().replaced if core is not None and out else []
    for owner, name, original, _ in replaced:
        setattr(owner, name, original)
    try:
        yield
    finally:
        for owner, name, _, ours in replaced:
            setattr(owner, name, ours)
