"""TensorFlow's own library, for switches that exist only in C++."""

from __future__ import annotations

import ctypes
import os
import sys

from ..guard import raised_by_job

LIBRARY = "libtensorflow_framework.so.2"


#: Loaded once: each load makes a class that the job's garbage collection must free.
_loaded_library: ctypes.CDLL | None = None


def library() -> ctypes.CDLL | None:
    """Return the library that the job has loaded, None where there is none; never load it."""
    global _loaded_library
    if _loaded_library is not None:
        return _loaded_library
    package = getattr(sys.modules.get("tensorflow"), "__file__", None)
    if package is None:
        return None
    try:
        _loaded_library = ctypes.CDLL(
            os.path.join(os.path.dirname(package), LIBRARY), mode=os.RTLD_NOLOAD | os.RTLD_NOW
        )
    except OSError as error:
        if raised_by_job(error):
            raise
    return _loaded_library
