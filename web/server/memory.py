"""Keeps the memory of a server small: few threads, and memory is given back after a request."""

import ctypes
import gc
from contextlib import suppress
from typing import Final

import pyarrow as pa

from ...collector.store import sql

#: Parameters of glibc's `mallopt` by their numbers: one heap for all threads (M_ARENA_MAX); blocks
#: from 64 KB have a mapping of their own (M_MMAP_THRESHOLD), and the end of the heap is given back
#: from 128 KB (M_TRIM_THRESHOLD). By default both sizes grow with what the process frees.
_MALLOPT: Final = {-8: 1, -3: 64 << 10, -1: 128 << 10}


def confine() -> None:
    """Let Arrow and DuckDB use one thread, and allocators that give memory back.

    All threads share one heap.
    """
    with suppress(AttributeError):  # not every C library has the function
        for parameter, value in _MALLOPT.items():
            ctypes.CDLL(None).mallopt(parameter, value)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    pa.set_memory_pool(pa.system_memory_pool())
    sql.confine()
    gc.freeze()  # garbage collections then skip the objects that exist since the start


def release() -> None:
    """Collect garbage, and give unused memory back to the system."""
    gc.collect()
    with suppress(AttributeError):  # only glibc has the function
        ctypes.CDLL(None).malloc_trim(0)
