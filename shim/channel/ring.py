"""The writer's side of the channel: one sealed memfd (docs/channel.md).

It holds the control page, the span ring and the record ring.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from functools import partial

from ...formats import layout
from ...formats.errors import TfprofError
from ...formats.layout import WORD
from ...formats.version import CHANNEL_VERSION
from .. import libc
from ..clock import getpid, mono, real
from ..guard import raised_by_job
from ..pacing.costs import Costs
from ..reentrant_guard import ReentrantGuard
from ..try_lock import TryLock
from . import memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PROT_READ_WRITE, _MAP_SHARED = 3, 1

_HEAD, _TAIL, _RECORDS = WORD["head"], WORD["tail"], WORD["records"]
_DROPPED_TRACES, _RING_ERROR = WORD["dropped_traces"], WORD["ring_error"]
_DROPPED, _DROPPED_BYTES = WORD["dropped_records"], WORD["dropped_bytes"]
_MISSED = WORD["missed"]


class ChannelError(TfprofError):
    """The channel or record ring cannot be created; the job continues without it."""

    slug = "no-channel"


class Channel(object):
    """One process's channel.

    ``words`` are its 8-byte words, ``view`` its bytes up to the record ring, ``costs`` the costs
    of tracing. ``uid`` and ``launch`` are 64-bit numbers, ``ring_bytes`` the size that the record
    ring will have. ChannelError when the system refuses the memory.
    """

    def __init__(self, uid: int, launch: int, ring_bytes: int) -> None:
        self.pid = getpid()
        self.ring_bytes = ring_bytes
        self.data_max = min(ring_bytes, layout.RECORD_MAX) - layout.RECORD.size  # bytes of data that a record may have
        self.ring: memoryview[int] | None = None
        self.ring_problem: tuple[str, str] | None = None  # (slug, text): why there will never be a record ring
        self.names: dict[int, str] = {}  # names of called functions, by span key
        self.names_lock = TryLock()  # held while names are added
        self._guard = ReentrantGuard()
        self._reported_too_large = False  # whether a record that is too large was reported
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
        self.costs = Costs(self.words)
        for name, value in (
            ("uid", uid),
            ("pid", self.pid),
            ("created_real_ns", real()),
            ("created_mono_ns", mono()),
            ("launch", launch),
        ):
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
            raise ChannelError(
                "the system refuses anonymous memory files: %s" % error.strerror, "memfd-refused"
            ) from None
        # Before the first access: if another process truncated the file, SIGBUS would end this one.
        fcntl.fcntl(self._fd, memory.ADD_SEALS, memory.SEAL_SHRINK)
        memory.reserve(self._fd, layout.RING_AT)
        self._inode = _inode(self._fd)
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
        size = layout.RECORD.size + len(data)
        if len(data) > self.data_max:
            self._drop(size)
            self._report_too_large(kind, len(data))
            return False
        lock = self._guard.take()
        if lock is None:
            self._drop(size)
            return False
        try:
            if not self._has_space(size):
                self._drop(size)
                return False
            words = self.words
            number = words[_RECORDS] + 1
            header = layout.RECORD.pack(size, kind, flags, number, step, start_mono, start_real, duration, thread, key)
            at = self._copy(self._copy(words[_HEAD], header), data)
            words[_RECORDS] = number
            words[_HEAD] = at
            return True
        finally:
            lock.release()

    def count_lost_trace(self, *, record_counted: bool = False) -> None:
        """Count a traced step whose data is lost.

        ``record_counted``: its record was dropped and is already counted.
        """
        self.words[_DROPPED_TRACES] += 1
        if not record_counted:
            self.words[_DROPPED] += 1

    def count_missed_step(self) -> None:
        """Count a step that was selected by its number and could not be traced."""
        lock = self._guard.take()
        if lock is not None:
            try:
                self.words[_MISSED] += 1
            finally:
                lock.release()

    def report(self, slug: str, text: str) -> bool:
        """Put a REFUSED record with a reason; False when it was dropped."""
        import json

        return self.put(layout.REFUSED, json.dumps({"slug": slug, "text": text}).encode(), 0, mono(), real())

    def _report_too_large(self, kind: int, size: int) -> None:
        """Report once that a record is too large for this ring."""
        if self._reported_too_large:
            return
        self._reported_too_large = True
        text = "a %s of %d bytes: a record in this ring has at most %d" % (
            layout.RECORD_NAMES.get(kind, "record"),
            size,
            self.data_max,
        )
        self.report("record-too-large", text)

    def grow(self) -> None:
        """Create the record ring once; ChannelError when that fails, or has failed before."""
        if self.ring is not None:
            return
        if self.ring_problem is None:
            try:
                self._grow()
            except ChannelError as error:
                self.ring_problem = (error.slug, error.args[0])
        if self.ring_problem is not None:
            raise ChannelError(self.ring_problem[1], self.ring_problem[0])

    def abandon(self) -> None:
        """Close the descriptor, unless the program has closed it, and keep the memory.

        A forked child calls this for its parent's channel.
        """
        if _inode(self._fd) == self._inode:
            os.close(self._fd)

    def detach(self) -> None:
        """Mark the channel as detached and close its descriptor.

        The memory is freed with the last reference to it.
        """
        self.words[WORD["detached"]] = 1
        self.ring_problem = ("detached", "the shim was disarmed")
        self.abandon()

    def _grow(self) -> None:
        if _inode(self._fd) != self._inode:
            self.words[_RING_ERROR] = errno.EBADF
            raise ChannelError("the program closed the channel's descriptor before the first trace", "channel-closed")
        size = layout.RING_AT + self.ring_bytes
        try:
            memory.reserve(self._fd, size)
            ring = _mapping(self._fd, size)[layout.RING_AT :]
            fcntl.fcntl(self._fd, memory.ADD_SEALS, memory.SEAL_GROW)
        except OSError as error:
            if raised_by_job(error):
                raise
            self.words[_RING_ERROR] = error.errno or errno.ENOMEM
            raise ChannelError("no memory for the record ring: %s" % error.strerror, "channel-memory") from None
        self.words[WORD["ring_size"]] = self.ring_bytes
        self.ring = ring

    def _has_space(self, size: int) -> bool:
        if self.ring is None:
            try:
                self.grow()
            except ChannelError:
                return False
        unread = self.words[_HEAD] - self.words[_TAIL]
        return 0 <= unread <= self.ring_bytes - size

    def _copy(self, at: int, data: bytes) -> int:
        """Copy ``data`` to the position ``at``; return the position after it.

        A position is a number of bytes ever written to the ring.
        """
        ring, view = self.ring, memoryview(data)
        assert ring is not None
        begin = at % self.ring_bytes
        size = min(len(data), self.ring_bytes - begin)  # up to the end of the ring
        ring[begin : begin + size] = view[:size]
        if size < len(data):
            ring[: len(data) - size] = view[size:]
        return at + len(data)

    def _drop(self, size: int) -> None:
        self.words[_DROPPED] += 1
        self.words[_DROPPED_BYTES] += size


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


def _inode(fd: int) -> tuple[int, int] | None:
    try:
        info = os.fstat(fd)
    except OSError as error:
        if raised_by_job(error):
            raise
        return None
    return info.st_dev, info.st_ino
