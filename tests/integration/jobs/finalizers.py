"""Raises an exception of a signal handler just as each finalizer of the shim begins.

    python finalizers.py SHIM

Prints the finalizers for which the job sees this exception never, or more than once. SHIM is the
folder of the shim.
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
    """An object of the job."""


def shim_module(name):
    """Return the shim's module ``name``."""
    __import__("_tfprof.shim." + name)
    return sys.modules["_tfprof.shim." + name]


def mapping():
    """Return memory that is unmapped when the last reference to it is dropped."""
    fd = shim_module("channel.memory").create("test")
    os.ftruncate(fd, mmap.PAGESIZE)
    memory = shim_module("channel.ring")._mapping(fd, mmap.PAGESIZE)
    os.close(fd)
    return memory


def key():
    """Return an object that is a key of a weak table."""
    thing = Thing()
    table.set(thing)
    return thing


def callback():
    """Return an object with a weak reference that has a callback."""
    thing = Thing()
    references.append(weakref.ref(thing, shim_module("guard").called_back(callback_arguments.append)))
    return thing


def end():
    """Return an object that observes the end of a call."""
    return shim_module("steps.observer").EndCallback(callback_arguments.append)


FINALIZERS = (mapping, key, callback, end)
references = []
callback_arguments = []  # arguments of the callbacks, which run unless they are interrupted


def handler(_number, _frame):
    """Raise the job's exception."""
    raise TimeoutError("theirs")


def count_arrivals(make):
    """Return how often the job sees an exception that is pending when the object is freed."""
    things, count = [make()], 0
    # No Python code runs from the signal to the finalizer. C code sends the signal, and does not
    # run the handler.
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
    table = shim_module("weak_table").WeakTable()
    _signal.signal(_signal.SIGUSR1, handler)
    for make in FINALIZERS:
        for _ in range(3):
            count = count_arrivals(make)
            if count != 1:
                print(make.__name__, count)
    print(len(FINALIZERS), "finalizers")
