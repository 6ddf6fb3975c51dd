"""Removes the profiler's hooks from a job for some steps.

During these steps, the job calls TensorFlow's own functions.
"""

import resource
import sys
from contextlib import contextmanager


class Block:
    """A block of ``steps`` steps; at its end ``page_faults`` is the number of its page faults."""

    def __init__(self, steps):
        self.steps = steps
        self.page_faults = -page_faults()


def page_faults():
    """Return the number of page faults without I/O of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@contextmanager
def block(line):
    """Provide the Block that ``line`` describes: `STEPS` or `STEPS bare`.

    In a bare block the hooks are removed.
    """
    steps, *words = line.split()
    with without_hooks("bare" in words):
        current_block = Block(int(steps))
        try:
            yield current_block
        finally:
            current_block.page_faults += page_faults()


@contextmanager
def without_hooks(enabled):
    """Remove the hooks within the `with` statement if ``enabled``."""
    core = sys.modules.get("_tfprof.shim.core")
    replaced = core.state().replaced if core is not None and enabled else []
    for owner, name, original, _ in replaced:
        setattr(owner, name, original)
    try:
        yield
    finally:
        for owner, name, _, replacement in replaced:
            setattr(owner, name, replacement)
