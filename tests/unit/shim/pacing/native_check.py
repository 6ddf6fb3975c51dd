"""Loads the C part of the shim, and checks what it counts and what it keeps.

This script runs in Python 3.7 and later. Usage: native_check.py SHIM_FOLDER
"""

import ctypes
import gc
import sys
import threading
import types
from typing import Any


def load(shim_folder):
    """Return the C part of the shim."""
    for name in ("ours", "ours.shim"):
        package = types.ModuleType(name)
        package.__path__ = [shim_folder]
        sys.modules[name] = package
    return __import__("ours.shim.pacing.ordinals", fromlist=["native"]).native


native: Any = load(sys.argv[1])
assert native is not None


def bound_ordinals(number):
    """Return new Ordinals and its count word; the next ``number`` steps are only counted."""
    ordinals, word = native.Ordinals(), ctypes.c_uint64()
    ordinals.word = ctypes.addressof(word)
    ordinals.timed_at = number + 1
    return ordinals, word


def check_ordinals():
    ordinals, word = bound_ordinals(3)
    assert [ordinals.take_untimed() for _ in range(5)] == [1, 2, 3, 0, 0]
    assert word.value == 3
    assert ordinals.next() == 4
    assert ordinals.take_untimed() == 0
    assert word.value == 3
    ordinals.timed_at = 7
    assert ordinals.take_untimed() == 5
    assert (ordinals.timed_at, ordinals.counted) == (7, 4)
    assert (ordinals.take_counted(), ordinals.take_counted()) == (4, 0)
    ordinals.counted -= 1
    assert (ordinals.take_counted(), ordinals.counted) == (0, -1)
    ordinals.word, ordinals.last = 0, 0
    assert ordinals.next() == 1
    assert word.value == 5
    ordinals.timed_at = 1 << 62
    assert ordinals.take_untimed() == 2
    ordinals.timed_at = -5
    assert ordinals.take_untimed() == 0


def check_orders():
    ordinals, words = native.Ordinals(), (ctypes.c_uint64 * 2)()
    ordinals.word, ordinals.order = ctypes.addressof(words), ctypes.addressof(words) + 8
    ordinals.timed_at = 11
    assert [ordinals.take_untimed() for _ in range(5)] == [1, 2, 3, 4, 5]
    words[1] = 1 << 63
    assert ordinals.take_untimed() == 0
    assert (ordinals.timed_at, ordinals.counted) == (11, 5)
    ordinals.generation = 1 << 63
    assert ordinals.take_untimed() == 6


def check_errors():
    ordinals = native.Ordinals()
    for name, value in (("timed_at", "a"), ("counted", None), ("generation", "a"), ("unknown", 1)):
        try:
            setattr(ordinals, name, value)
        except (TypeError, AttributeError):
            continue
        raise AssertionError(name)


def check_threads():
    ordinals, word = bound_ordinals(40000)
    taken: list[int] = []

    def take():
        taken.extend(iter(ordinals.take_untimed, 0))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert sorted(taken) == list(range(1, 40001))
    assert word.value == 40000


def check_references():
    gc.collect()
    before = sys.getrefcount(native.Ordinals)
    for _ in range(1000):
        ordinals, _word = bound_ordinals(5)
        take = ordinals.take_untimed
        take()
        del ordinals, take
    assert sys.getrefcount(native.Ordinals) == before


for check in (check_ordinals, check_orders, check_errors, check_threads, check_references):
    check()
