"""Keeps TensorFlow's log lines about our profiler sessions off the job's standard error.

TensorFlow logs through the C library's stream ``stderr``, some releases through a copy of the
pointer to it. While a call of ours runs, that stream writes into a memory file. Lines that other
threads logged meanwhile are written to the job's standard error afterwards; the profiler's own
lines are left out. Descriptor 2 itself, which Python writes to, is not touched.
"""

from __future__ import annotations

import ctypes
import fcntl
import os

from . import descriptors, libc
from .channel import memory
from .guard import raised_by_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

#: Offset of the descriptor in a FILE of the GNU C library on 64-bit machines (struct_FILE.h).
_FILENO_AT = 112
_STREAMS = ("stdout", "stderr")
#: Source files of TensorFlow that log about a profiler session; the first line of each message
#: names one.
_FILES = (
    b"profiler_session.cc:",
    b"profiler_controller.cc:",
    b"save_profile.cc:",
    b"capture_profile.cc:",
    b"host_tracer",
    b"device_tracer",
    b"cupti_",
    b"rocm_tracer",
)
#: Prefixes of the further lines of such messages.
_FURTHER = (b"\n", b"Dumped ")
#: The logging library writes this once, before the first line that a process logs.
_PREAMBLE = b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"


class RedirectError(Exception):
    """TensorFlow's log lines cannot be redirected, so no profiler session is started."""


class FilteredStderr(object):
    """While entered, the C library's ``stderr`` writes into a memory file, until ``close``.

    ``fileno`` is the stream's descriptor, ``fd`` the file's, ``job`` the job's; ``seals`` are those
    of the file. Only one thread at a time may enter an object.
    """

    __slots__ = ("_at", "_file", "_flush", "fd", "fileno", "job", "seals")

    def __init__(self) -> None:
        self.fileno, self._flush = _stderr()
        self.job = self.fileno.value
        self._at, self.fd = 0, -1
        try:
            self.fd = memory.create("log")
            self._file = os.fstat(self.fd)
            # Other files that get its number have other seals, or none.
            fcntl.fcntl(self.fd, memory.ADD_SEALS, memory.SEAL_SHRINK)
            self.seals = fcntl.fcntl(self.fd, memory.GET_SEALS)
        except BaseException:
            if self.fd >= 0:
                os.close(self.fd)
            raise

    def __enter__(self) -> None:
        if self.fileno.value != self.fd:
            self.job = self.fileno.value
        if self._is_ours():
            self.fileno.value = self.fd

    def __exit__(self, *_error: object) -> None:
        self.restore()
        self._flush()  # waits for threads that write through the replaced descriptor
        if not self._is_ours():
            return
        size = os.fstat(self.fd).st_size - self._at
        text = job_lines(os.pread(self.fd, size, self._at)) if size else b""
        self._at += size
        if text:
            descriptors.write(self.job, text)

    def restore(self) -> None:
        """Restore the stream's descriptor if it is replaced."""
        if self.fileno.value == self.fd:
            self.fileno.value = self.job

    def close(self) -> None:
        """Restore the stream and close the file; idempotent."""
        self.restore()
        if self._is_ours():
            fd, self.fd = self.fd, -1
            os.close(fd)

    def _is_ours(self) -> bool:
        """Return whether the descriptor still belongs to the file; the job may replace it."""
        return descriptors.is_file(self.fd, self._file)


def _stderr() -> tuple[ctypes.c_int, Callable[[], object]]:
    """Return the descriptor field of the C library's ``stderr`` and a function that flushes it.

    RedirectError when the stream is not laid out as expected.
    """
    try:
        streams = [ctypes.c_void_p.in_dll(libc.plain, name) for name in _STREAMS]
    except ValueError as error:
        if raised_by_job(error):
            raise
        streams = []
    numbers = [ctypes.c_int.from_address(stream.value + _FILENO_AT) for stream in streams if stream.value]
    if len(numbers) != len(_STREAMS) or any(
        number.value != libc.plain.fileno(stream) for number, stream in zip(numbers, streams)
    ):
        raise RedirectError("this C library's stderr is not as expected")
    return numbers[-1], lambda: libc.plain.fflush(streams[-1])


def job_lines(text: bytes) -> bytes:
    """Return the lines of ``text`` that are not about our profiler session."""
    lines = text.splitlines(True)
    kept, dropping = [], False
    for line, after in zip(lines, lines[1:] + [b""]):
        first = after if line.startswith(_PREAMBLE) else line
        dropping = any(name in first for name in _FILES) or (dropping and line.startswith(_FURTHER))
        if not dropping:
            kept.append(line)
    return b"".join(kept)
