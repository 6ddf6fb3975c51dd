"""Keeps the lines that TensorFlow logs about our own profiler sessions off the job's standard error.

TensorFlow writes its log through the C library's ``stderr``, which the C library lets a program replace. While a call of
ours runs, ``stderr`` is a stream in memory. What other threads wrote meanwhile is written to the job's stream afterwards; the
profiler's own lines are left out. No descriptor is touched, and what Python prints does not pass here.
"""

from __future__ import annotations

import ctypes
import os

#: Source files of TensorFlow that log about a profiler session; each line names its file and line number.
_FILES = (
    b"profiler_session.cc:",
    b"profiler_controller.cc:",
    b"save_profile.cc:",
    b"host_tracer",
    b"device_tracer",
    b"cupti_",
    b"rocm_tracer",
)
#: The logging library says this once, before the first line that a process logs: without ours it would not have to yet.
_PREAMBLE = b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"


class NoisyError(Exception):
    """Nothing can keep the lines away: there is to be no profiler session."""


class Captured(object):
    """While entered, the C library's ``stderr`` is a stream in memory; one thread at a time may enter it.

    ``stream`` is the variable, ``memory`` the address of the stream in memory, ``job`` that of the job's own.
    """

    __slots__ = ("_libc", "_size", "_text", "job", "memory", "stream")

    def __init__(self) -> None:
        libc = self._libc = ctypes.CDLL(None, use_errno=True)
        try:
            self.stream = ctypes.c_void_p.in_dll(libc, "stderr")
            libc.open_memstream.restype = ctypes.c_void_p
        except (AttributeError, ValueError):
            raise NoisyError("this C library has no stderr that can be replaced") from None
        libc.fseek.argtypes = (ctypes.c_void_p, ctypes.c_long, ctypes.c_int)
        libc.fwrite.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
        self._text, self._size = ctypes.c_void_p(), ctypes.c_size_t()
        self.job = self.stream.value
        # Never closed: another thread may be about to write to it at any time.
        self.memory = libc.open_memstream(ctypes.byref(self._text), ctypes.byref(self._size))
        if not self.memory:
            raise NoisyError("no memory for a stream: %s" % os.strerror(ctypes.get_errno()))

    def __enter__(self) -> None:
        self.job = self.stream.value
        self.stream.value = self.memory

    def __exit__(self, *_error: object) -> None:
        self.restore()
        self.flush()

    def restore(self) -> None:
        """Put the job's stream back, if it was replaced."""
        if self.stream.value == self.memory:
            self.stream.value = self.job

    def flush(self) -> None:
        """Write what was captured and is not the profiler's to the job's stream."""
        memory = ctypes.c_void_p(self.memory)
        self._libc.fflush(memory)
        if not self._size.value:
            return
        text = others(ctypes.string_at(self._text.value or 0, self._size.value))
        self._libc.fseek(memory, 0, os.SEEK_SET)
        if text and self.job:
            self._libc.fwrite(text, 1, len(text), self.job)
            self._libc.fflush(ctypes.c_void_p(self.job))


def others(text: bytes) -> bytes:
    """Return the lines of ``text`` that are not about our profiler session."""
    lines = text.splitlines(True)
    following = lines[1:] + [b""]
    return b"".join(line for line, after in zip(lines, following) if not _is_profilers(line, after))


def _is_profilers(line: bytes, after: bytes) -> bool:
    if line.startswith(_PREAMBLE):
        line = after
    return any(name in line for name in _FILES)


_captured: Captured | None = None


def captured() -> Captured:
    """Return the process's one ``Captured``; NoisyError when there can be none."""
    global _captured
    if _captured is None:
        _captured = Captured()
    return _captured


def _forked() -> None:
    """Give a forked child, in which the call that is captured does not go on, its own stream back."""
    global _captured
    if _captured is not None:
        _captured.restore()
        _captured = None


os.register_at_fork(after_in_child=_forked)
