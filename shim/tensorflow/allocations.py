"""Makes TensorFlow report CPU allocations to a profiler session.

By default TensorFlow reports only those of accelerators.
"""

from __future__ import annotations

import ctypes
import sys

from ..process_events import in_child
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
_turn_off: Callable[[], object] | None = None  # function that turns the switch off, while tfprof has it on


def enable() -> None:
    """Report allocations until ``disable``.

    Nothing happens if there is an accelerator or no such switch, or if the job turned the switch on
    itself. In a forked child the switch is turned off: the allocator takes a lock for its
    statistics, and the child could find it locked for ever.
    """
    global _turn_off
    library = None if has_accelerator() else tf_library.library()
    names = next((names for names in _SWITCHES if all(hasattr(library, name) for name in names)), None)
    if names is None:
        return
    is_on, turn_on, turn_off = (getattr(library, name) for name in names)
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
