"""The C library, loaded once.

Each load creates a class, which would be left for the job's garbage collection.
"""

from __future__ import annotations

import ctypes

plain = ctypes.CDLL(None)
#: The library for calls that need ``ctypes.get_errno``.
with_errno = ctypes.CDLL(None, use_errno=True)
