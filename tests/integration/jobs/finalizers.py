"""Raises an exception of a signal handler just as each finalizer of the shim begins.

    python finalizers.py SHIM

Prints the finalizers whose exception the job does not see exactly once. SHIM is the folder of the
shim.
"""

import _signal
import ctypes
import itertools
import mmap
import os
import runpy
import sys
import weakref

LIBC = ctypes.CDLL(None)


class Thing:
    """Something of the job's."""


def our(name):
    """Return the shim's module ``name``."""
    __import__("_tfprof.shim." + name)
    return sys.modules["_tfprof.shim." + name]


def mapping():
    """Return memory that is unmapped with the last reference."""
    fd = our("channel.memory").create("test")
    os.ftruncate(fd, mmap.PAGESIZE)
    made = our("channel.ring")._mapping(fd, mmap.PAGESIZE)
    os.close(fd)
    return made


def key():
    """Return a key of a table."""
    made = Thing()
    table.set(made)
    return made


def callback():
    """Return an object with a weak reference that has a callback."""
    made = Thing()
    kept.append(weakref.ref(made, our("guard").called_back(seen.append)))
    return made


def end():
    """Return what observes the end of a call."""
    return our("tensorflow.call_observer").EndCallback(seen.append)


def batch():
    """Return a batch that is only counted."""
    made = object.__new__(our("tensorflow.keras_batches")._CountedBatch)
    made.here = our("tensorflow.function").ThreadState()
    made.frame = made.has_run = 0
    return made


FINALIZERS = (mapping, key, callback, end, batch)
kept = []
seen = []  # arguments of the callbacks, which run unless they are interrupted


def handler(_number, _frame):
    """Raise the job's exception."""
    raise TimeoutError("theirs")


def arrives(make):
    """Return how often the exception arrives that waits when the object of ``make`` goes."""
    things, count = [make()], 0
    # No Python code runs from the signal to the finalizer; the signal is sent by C code that does
    # not run its handler.
    calls = itertools.chain(map(LIBC.kill, [os.getpid()], [_signal.SIGUSR1]), map(list.clear, [things]))
    try:
        any(calls)
        assert not things  # the exception arrives here at the latest
    except TimeoutError:
        count += 1
    try:
        assert not things
    except TimeoutError:
        count += 1
    return count


if __name__ == "__main__":
    runpy.run_path(os.path.join(sys.argv[1], "inject", "sitecustomize.py"))
    table = our("weak_table").WeakTable()
    _signal.signal(_signal.SIGUSR1, handler)
    for each in FINALIZERS:
        for _ in range(3):
            found = arrives(each)
            if found != 1:
                print(each.__name__, found)
    print(len(FINALIZERS), "finalizers")
