"""The C library, loaded once.

Each load creates a class, which would be left for the job's garbage collection.
"""

from __future__ import annotations

import ctypes

plain = ctypes.CDLL(None)
#: The library for calls that need ``ctypes.get_errno``.
with_errno = ctypes.CDLL(None, use_errno=True)

#: The structure `rusage`; made once, since the job's garbage collection has to free each class.
Usage = ctypes.c_long * 18
PEAK = 4  # index of the peak resident size (KiB) in a `Usage`


def peak_kib() -> int:
    """Return the peak resident size of this process in KiB."""
    usage = Usage()
    plain.getrusage(0, usage)
    return int(usage[PEAK])
