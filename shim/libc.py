"""The C library, loaded once: each load makes a class, which is left for the job's garbage collection."""

from __future__ import annotations

import ctypes

plain = ctypes.CDLL(None)
#: For calls after which ``ctypes.get_errno`` is asked.
with_errno = ctypes.CDLL(None, use_errno=True)
