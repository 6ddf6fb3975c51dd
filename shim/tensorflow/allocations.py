"""Makes TensorFlow report CPU allocations to a session: by default only those of accelerators."""

from __future__ import annotations

import ctypes
import sys
from typing import Callable

from .. import core
from ..guard import attempt
from ..own_os import os
from ..process_events import in_child

LIBRARY = "libtensorflow_framework.so.2"
_CONTEXT = "tensorflow.python.eager.context"
_CPUS = ("CPU", "XLA_CPU")
_SWITCH = ("24CPUAllocatorStatsEnabled", "23EnableCPUAllocatorStats", "24DisableCPUAllocatorStats")
#: The switch of the allocator's statistics (query, on, off), in TF 2.11 and later, and before.
_SWITCHES = tuple(tuple("_ZN%s%sEv" % (namespace, name) for name in _SWITCH) for namespace in ("3tsl", "10tensorflow"))
_NO_SWITCH = "%s lacks the switch of the CPU allocator's statistics: steps of a profiler session have no memory"
#: Loaded once: each load makes a class that the job's garbage collection must free.
_loaded_library: ctypes.CDLL | None = None
_turn_off: Callable[[], object] | None = None  # function that turns the switch off, while tfprof has it on


def enable() -> None:
    """Report allocations until ``disable``.

    Nothing happens if there is an accelerator or no such switch, which is reported, or if the job
    turned the switch on itself. In a forked child the switch is turned off: the allocator takes a
    lock for its statistics, and the child could find it locked for ever.
    """
    global _turn_off
    if has_accelerator():
        return
    loaded_library = library()
    names = next((names for names in _SWITCHES if all(hasattr(loaded_library, name) for name in names)), None)
    if names is None:
        if "tensorflow" in sys.modules:
            core.report_missing(_NO_SWITCH % LIBRARY)
        return
    is_on, turn_on, turn_off = (getattr(loaded_library, name) for name in names)
    is_on.restype = ctypes.c_bool
    if is_on():
        return
    in_child(disable)
    _turn_off = turn_off
    turn_on()


def disable() -> None:
    """Turn off what ``enable`` turned on."""
    global _turn_off
    if _turn_off is not None:
        _turn_off()  # cleared only afterwards: a child forked meanwhile must turn it off, too
        _turn_off = None


def has_accelerator() -> bool:
    """Return whether TensorFlow uses any device other than a CPU."""
    devices = sys.modules[_CONTEXT].context()._logical_devices
    return any(device.device_type not in _CPUS for device in devices or ())


def library() -> ctypes.CDLL | None:
    """Return the library that the job has loaded, None where there is none; never load it."""
    global _loaded_library
    if _loaded_library is None:
        _loaded_library = attempt(OSError, ctypes.CDLL, LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    return _loaded_library
