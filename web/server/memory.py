"""Keeps the memory of a server small: few threads, and memory is given back after a request."""

import ctypes
import gc
from contextlib import suppress
from typing import Final

import pyarrow as pa

from ...collector.store import sql

#: A parameter of glibc's `mallopt`: the number of heaps among which the threads are shared.
_M_ARENA_MAX: Final = -8


def confine() -> None:
    """Let Arrow and DuckDB use one thread, and allocators that give memory back.

    All threads share one heap.
    """
    with suppress(AttributeError):  # not every C library has the function
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
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
