"""Keeps TensorFlow's log lines about our profiler sessions off the job's standard error.

TensorFlow logs through the C library's stream ``stderr``; some releases copy that pointer.
While a call of ours runs, that stream writes into a memory file. Lines that other threads logged
meanwhile are written to the job's standard error afterwards; the profiler's own lines are left out.
Descriptor 2 itself, which Python writes to, is not touched.
"""

from __future__ import annotations

import ctypes
from typing import Callable

from .. import descriptors, libc
from ..channel import memory
from ..guard import attempt
from ..own_os import os
from ..steps.window import ExportError

#: Offset of the descriptor in a FILE of the GNU C library on 64-bit machines (struct_FILE.h).
_FILENO_AT = 112
_STREAMS = ("stdout", "stderr")
#: Source files of TensorFlow that log about a profiler session. The first line of a message has the
#: name of its source file.
_PROFILER_FILES = (
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
_FURTHER_LINES = (b"\n", b"Dumped ")
#: The logging library writes this line once, before the first message of a process.
_PREAMBLE = b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"


class FilteredStderr(object):
    """Within ``with``, the C library's ``stderr`` writes into a memory file; ``close`` frees it.

    ``fileno`` is the stream's field with its descriptor, ``fd`` the descriptor of the memory file,
    ``job_fd`` the one that the stream has without us. ``seals`` are those of the memory file. Only
    one thread at a time may enter an object.
    """

    __slots__ = ("_file_status", "_filtered_size", "_flush", "fd", "fileno", "job_fd", "seals")

    def __init__(self) -> None:
        self.fileno, self._flush = _stderr_stream()
        self.job_fd = self.fileno.value
        self._filtered_size, self.fd = 0, -1  # bytes of the file that were filtered so far
        try:
            self.fd = memory.create("log")
            self._file_status = os.fstat(self.fd)
            # A file of the job's that gets this descriptor has other seals, or none.
            descriptors.control(self.fd, memory.ADD_SEALS, memory.SEAL_SHRINK)
            self.seals = descriptors.control(self.fd, memory.GET_SEALS)
        except BaseException:
            if self.fd >= 0:
                os.close(self.fd)
            raise

    def __enter__(self) -> None:
        if self.fileno.value != self.fd:
            self.job_fd = self.fileno.value
        if self._is_ours():
            self.fileno.value = self.fd

    def __exit__(self, *_error: object) -> None:
        self.restore()
        self._flush()  # waits for threads that write through the replaced descriptor
        if not self._is_ours():
            return
        size = os.fstat(self.fd).st_size - self._filtered_size
        text = job_lines(os.pread(self.fd, size, self._filtered_size)) if size else b""
        self._filtered_size += size
        if text:
            descriptors.write(self.job_fd, text)

    def restore(self) -> None:
        """Restore the stream's descriptor if it is replaced."""
        if self.fileno.value == self.fd:
            self.fileno.value = self.job_fd

    def close(self) -> None:
        """Restore the stream and close the file; idempotent."""
        self.restore()
        if self._is_ours():
            fd, self.fd = self.fd, -1
            os.close(fd)

    def _is_ours(self) -> bool:
        """Return whether ``fd`` is still the memory file's descriptor; the job may replace it."""
        return descriptors.refers_to(self.fd, self._file_status)


def _stderr_stream() -> tuple[ctypes.c_int, Callable[[], object]]:
    """Return the descriptor field of the C library's ``stderr`` and a function that flushes it.

    ExportError when the stream is not laid out as expected.
    """
    streams = attempt(ValueError, lambda: [ctypes.c_void_p.in_dll(libc.plain, name) for name in _STREAMS]) or []
    fields = [ctypes.c_int.from_address(stream.value + _FILENO_AT) for stream in streams if stream.value]
    if len(fields) != len(_STREAMS) or any(
        field.value != libc.plain.fileno(stream) for field, stream in zip(fields, streams)
    ):
        text = "TensorFlow's log lines cannot be kept off standard error: this C library's stderr is not as expected"
        raise ExportError("profiler-noisy", text)
    return fields[-1], lambda: libc.plain.fflush(streams[-1])


def job_lines(text: bytes) -> bytes:
    """Return the lines of ``text`` that are not about our profiler session."""
    lines = text.splitlines(True)
    remaining_lines, is_of_profiler = [], False
    for line, next_line in zip(lines, lines[1:] + [b""]):
        message = next_line if line.startswith(_PREAMBLE) else line
        is_of_profiler = any(name in message for name in _PROFILER_FILES) or (
            is_of_profiler and line.startswith(_FURTHER_LINES)
        )
        if not is_of_profiler:
            remaining_lines.append(line)
    return b"".join(remaining_lines)
