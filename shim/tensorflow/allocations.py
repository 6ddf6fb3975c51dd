"""Makes TensorFlow report CPU allocations to a profiler session.

By itself it reports only those of accelerators.
"""

from __future__ import annotations

import ctypes
import sys

from ..lasting import in_child
from . import tf_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

_CONTEXT = "tensorflow.python.eager.context"
_CPUS = ("CPU", "XLA_CPU")
#: The switch of the allocator's statistics (query, on, off), in TF 2.11 and later, and before.
_SWITCHES = (
    (
        "_ZN3tsl24CPUAllocatorStatsEnabledEv",
        "_ZN3tsl23EnableCPUAllocatorStatsEv",
        "_ZN3tsl24DisableCPUAllocatorStatsEv",
    ),
    (
        "_ZN10tensorflow24CPUAllocatorStatsEnabledEv",
        "_ZN10tensorflow23EnableCPUAllocatorStatsEv",
        "_ZN10tensorflow24DisableCPUAllocatorStatsEv",
    ),
)
_off: Callable[[], object] | None = None  # function that turns the switch off, while tfprof has it on


def enable() -> None:
    """Report allocations until ``disable``.

    Nothing happens where there is an accelerator or no such switch, or where the job turned it on
    itself. The allocator takes a lock for its statistics, which a forked child could find locked
    for ever: there they are off.
    """
    global _off
    library = None if accelerated() else tf_library.library()
    names = next((names for names in _SWITCHES if all(hasattr(library, name) for name in names)), None)
    if names is None:
        return
    asked, on, off = (getattr(library, name) for name in names)
    asked.restype = ctypes.c_bool
    if asked():
        return
    in_child(disable)
    _off = off
    on()


def disable() -> None:
    """Turn off what ``enable`` turned on."""
    global _off
    if _off is not None:
        _off()  # cleared only afterwards: a child forked meanwhile must know that it was on
        _off = None


def accelerated() -> bool:
    """Return whether TensorFlow uses any device other than a CPU."""
    devices = sys.modules[_CONTEXT].context()._logical_devices
    return any(device.device_type not in _CPUS for device in devices or ())
