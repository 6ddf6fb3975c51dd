"""Writes bytes into a TF_Buffer of the job's; TensorFlow has no call for that.

A TF_Buffer is three words: data, length, deallocator. The words of the job's empty buffer and of a
full one of ours are swapped, through /proc/self/mem, where a wrong address is an error and not a
crash.
"""

from __future__ import annotations

import os

from ..descriptors import open_file
from ..guard import raised_by_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SIZE = 24  # bytes of a TF_Buffer
_EMPTY = b"\0" * _SIZE
_PROBE = b"tfprof: is this the buffer?"
_is_usable: bool | None = None


def is_usable(tf_session: Any) -> bool:
    """Return whether this TensorFlow's buffers can be written; tested once, on a buffer of ours."""
    global _is_usable
    if _is_usable is None:
        _is_usable = _probe(tf_session)
    return _is_usable


def set_content(tf_session: Any, buffer: Any, data: bytes) -> None:
    """Set the content of the job's empty ``buffer``; OSError or ValueError when that fails."""
    full = tf_session.TF_NewBufferFromString(data)
    try:
        _exchange(buffer, full, len(data))
    finally:
        tf_session.TF_DeleteBuffer(full)


def _probe(tf_session: Any) -> bool:
    buffer = tf_session.TF_NewBuffer()
    try:
        set_content(tf_session, buffer, _PROBE)
        return bytes(tf_session.TF_GetBuffer(buffer)) == _PROBE
    except (OSError, ValueError) as error:
        if raised_by_job(error):
            raise
        return False
    finally:
        tf_session.TF_DeleteBuffer(buffer)


def _exchange(empty: Any, full: Any, length: int) -> None:
    fd = open_file("/proc/self/mem", os.O_RDWR)
    try:
        empty_at, full_at = _address(fd, empty), _address(fd, full)
        old, new = os.pread(fd, _SIZE, empty_at), os.pread(fd, _SIZE, full_at)
        if old[:16] != _EMPTY[:16] or int.from_bytes(new[8:16], "little") != length:
            raise ValueError("not the known layout of a TF_Buffer")
        # In this order, an exception of the job's between the two writes leaks the data. In the
        # other order, it would let the data be freed twice.
        os.pwrite(fd, old, full_at)
        os.pwrite(fd, new, empty_at)
    finally:
        os.close(fd)


def _address(fd: int, buffer: Any) -> int:
    """Return the address of the TF_Buffer behind a SWIG proxy or pybind11 object."""
    proxy = getattr(buffer, "this", None)
    if proxy is not None:
        return int(proxy)
    return int.from_bytes(os.pread(fd, 8, id(buffer) + 16), "little")
