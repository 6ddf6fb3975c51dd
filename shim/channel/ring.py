"""The writer's side of the channel: a sealed memfd of control page and rings (docs/channel.md)."""

from __future__ import annotations

import ctypes
import errno
from functools import partial
from typing import Any, Callable

from ...formats import layout
from ...formats.errors import TfprofError
from ...formats.layout import WORD
from ...formats.version import CHANNEL_VERSION
from .. import libc
from ..clock import ThreadId, getpid, mono, real
from ..descriptors import control, refers_to
from ..guard import raised_by_job
from ..own_os import os
from ..reentrant_guard import ReentrantGuard
from . import memory

_PROT_READ_WRITE, _MAP_SHARED = 3, 1

_HEAD, _TAIL, _RECORDS = WORD["head"], WORD["tail"], WORD["records"]
_DROPPED_TRACES, _RING_ERROR = WORD["dropped_traces"], WORD["ring_error"]
_DROPPED, _DROPPED_BYTES, _FAULTS = WORD["dropped_records"], WORD["dropped_bytes"], WORD["faults"]


class ChannelError(TfprofError):
    """The channel cannot be created; the job continues without it."""

    slug = "no-channel"


class Channel(object):
    """One process's channel.

    ``words`` are its 8-byte words, ``view`` its bytes up to the record ring. ``uid`` and ``launch``
    are 64-bit numbers, ``ring_bytes`` the size that the record ring will have. ``threads`` has the
    calling thread's ``tid``. ChannelError when the system refuses the memory.
    """

    def __init__(self, uid: int, launch: int, ring_bytes: int) -> None:
        self.pid = getpid()
        self.ring_bytes = ring_bytes
        self.data_max = min(ring_bytes, layout.RECORD_MAX) - layout.RECORD.size  # bytes of data that a record may have
        self.ring: memoryview[int] | None = None
        self.ring_problem: tuple[str, str] | None = None  # (slug, text): why there will never be a record ring
        self.hello: Any = None  # set once it can be written
        self.threads = ThreadId()
        self._guard = ReentrantGuard()
        self._reported: set[str] = set()  # slugs that are reported once
        self._fd = -1
        try:
            self._open()
            self._describe(uid, launch)
        except BaseException as error:
            if self._fd >= 0:
                os.close(self._fd)
            if raised_by_job(error) or not isinstance(error, OSError):
                raise
            raise ChannelError("no memory for a channel: %s" % error.strerror, "channel-memory") from None

    def _describe(self, uid: int, launch: int) -> None:
        """Write the words that identify the channel, and last the magic, which makes it valid."""
        self.words = self.view.cast("Q")
        values = {"uid": uid, "pid": self.pid, "created_real_ns": real(), "created_mono_ns": mono(), "launch": launch}
        for name, value in values.items():
            self.words[WORD[name]] = value
        start, magic_size = layout.START.pack(layout.MAGIC, CHANNEL_VERSION, layout.PAGE), len(layout.MAGIC)
        self.view[magic_size : len(start)] = start[magic_size:]
        self.view[:magic_size] = layout.MAGIC

    def _open(self) -> None:
        """Create the file and map it; OSError or ChannelError when that fails."""
        try:
            self._fd = memory.create(layout.MEMFD_NAME)
        except OSError as error:
            if raised_by_job(error):
                raise
            text = "the system refuses anonymous memory files: %s" % error.strerror
            raise ChannelError(text, "memfd-refused") from None
        # Before the first access: if another process truncated the file, SIGBUS would end this one.
        control(self._fd, memory.ADD_SEALS, memory.SEAL_SHRINK)
        memory.reserve(self._fd, layout.RING_AT)
        self._file = os.fstat(self._fd)
        self.view = _mapping(self._fd, layout.RING_AT)

    def write_hello(self, data: bytes) -> None:
        """Write the hello page; ``data`` is JSON of at most HELLO_MAX bytes."""
        words = self.words
        words[WORD["hello_size"]] = 0
        self.view[layout.HELLO_AT : layout.HELLO_AT + len(data)] = data
        words[WORD["hello_generation"]] += 1
        words[WORD["hello_size"]] = len(data)

    def put(
        self,
        kind: int,
        data: bytes,
        step: int = 0,
        start_mono: int = 0,
        start_real: int = 0,
        duration: int = 0,
        thread: int = 0,
        key: int = 0,
        flags: int = 0,
    ) -> bool:
        """Put one record with the bytes ``data``; False when it was dropped and counted."""
        lock = None
        size = layout.RECORD.size + len(data)
        try:
            if len(data) > self.data_max:
                text = "a %s of %d bytes: a record in this ring has at most %d"
                text %= layout.RECORD_NAMES.get(kind, "record"), len(data), self.data_max
                self.report("record-too-large", text, is_unique=True)
            else:
                lock = self._guard.take()
            if lock is None or not self._has_space(size):
                self.words[_DROPPED] += 1
                self.words[_DROPPED_BYTES] += size
                return False
            number = self.words[_RECORDS] + 1
            header = layout.RECORD.pack(size, kind, flags, number, step, start_mono, start_real, duration, thread, key)
            at = self._copy(self._copy(self.words[_HEAD], header), data)
            self.words[_RECORDS] = number
            self.words[_HEAD] = at
            return True
        finally:
            if lock is not None:
                lock.release()

    def put_trace(self, put: Callable[[], bool | None]) -> None:
        """Call ``put``, which puts the record of a traced step; count the step if the data is lost.

        ``put`` returns whether the record was put; it has counted a dropped one.
        """
        was_put: bool | None = None
        try:
            was_put = put()
        finally:
            if not was_put:
                self.words[_DROPPED_TRACES] += 1
                self.words[_DROPPED] += was_put is None

    def count_fault(self, text: str) -> None:
        """Count an internal error; the channel keeps the first ``text``, a traceback."""
        self.words[_FAULTS] += 1
        if self.words[_FAULTS] == 1:
            data = text.encode("utf-8", "replace")[-layout.FAULT_MAX :]
            at = layout.FAULT_AT
            self.view[at + 4 : at + 4 + len(data)] = data
            self.view[at : at + 4] = len(data).to_bytes(4, "little")

    def report(self, slug: str, text: str, is_unique: bool = False) -> bool:
        """Put a REFUSED record, ``is_unique``: one for ``slug``; False when it was dropped."""
        import json

        if is_unique and slug in self._reported:
            return True
        self._reported.add(slug)
        return self.put(layout.REFUSED, json.dumps({"slug": slug, "text": text}).encode(), 0, mono(), real())

    def grow(self) -> tuple[str, str] | None:
        """Create the record ring once; return (slug, text) of what prevents it, else None."""
        if self.ring is None and self.ring_problem is None:
            self.ring_problem = self._grow()
        return self.ring_problem if self.ring is None else None

    def abandon(self) -> None:
        """Close the descriptor, unless the program has closed it; keep the memory."""
        self.hello = None  # it refers to this object
        if refers_to(self._fd, self._file):
            os.close(self._fd)

    def detach(self) -> None:
        """Mark the channel as detached; the memory is freed with the last reference to it."""
        self.words[WORD["detached"]] = 1
        self.ring_problem = ("detached", "the shim was disarmed")
        self.abandon()

    def _grow(self) -> tuple[str, str] | None:
        if not refers_to(self._fd, self._file):
            self.words[_RING_ERROR] = errno.EBADF
            return "channel-closed", "the program closed the channel's descriptor before the first trace"
        size = layout.RING_AT + self.ring_bytes
        try:
            memory.reserve(self._fd, size)
            ring = _mapping(self._fd, size)[layout.RING_AT :]
            control(self._fd, memory.ADD_SEALS, memory.SEAL_GROW)
        except OSError as error:
            if raised_by_job(error):
                raise
            self.words[_RING_ERROR] = error.errno or errno.ENOMEM
            return "channel-memory", "no memory for the record ring: %s" % error.strerror
        self.words[WORD["ring_size"]] = self.ring_bytes
        self.ring = ring
        return None

    def _has_space(self, size: int) -> bool:
        if self.ring is None and self.grow() is not None:
            return False
        unread = self.words[_HEAD] - self.words[_TAIL]
        return 0 <= unread <= self.ring_bytes - size

    def _copy(self, at: int, data: bytes) -> int:
        """Copy ``data`` to ``at``, in bytes ever written; return the position after it."""
        ring, view = self.ring, memoryview(data)
        assert ring is not None
        begin = at % self.ring_bytes
        size = min(len(data), self.ring_bytes - begin)  # up to the end of the ring
        ring[begin : begin + size] = view[:size]
        if size < len(data):
            ring[: len(data) - size] = view[size:]
        return at + len(data)


class _Unmapper(object):
    """Unmaps memory when this object dies.

    The finalizer is not a Python function: a signal handler of the job could raise an exception in
    such a function, and Python would drop the exception.
    """

    __slots__ = ("__del__",)

    def __init__(self, address: int, size: int) -> None:
        unmap = libc.plain.munmap
        unmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        self.__del__ = partial(unmap, address, size)


def _mapping(fd: int, size: int) -> memoryview[int]:
    """Map ``size`` bytes of ``fd`` as long as the result is used.

    Python's own mmap keeps a second descriptor, and closes it by number.
    """
    mmap = libc.with_errno.mmap
    mmap.restype = ctypes.c_void_p
    mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    address = mmap(None, size, _PROT_READ_WRITE, _MAP_SHARED, fd, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    array: Any = (ctypes.c_ubyte * size).from_address(address)
    array.unmapper = _Unmapper(address, size)
    return memoryview(array).cast("B")
