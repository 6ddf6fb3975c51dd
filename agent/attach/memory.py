"""Memory that is read and written by address."""

import os
from typing import Protocol


class Memory(Protocol):
    """Memory of a process, or a file: addresses are offsets."""

    def read(self, at: int, size: int) -> bytes:
        """Return ``size`` bytes, fewer if the rest is not there; OSError if that is not possible."""

    def write(self, at: int, data: bytes) -> None:
        """Write ``data``; OSError if that is not possible."""


class ProcessMemory:
    """The memory of process ``pid``, written through /proc."""

    def __init__(self, pid: int) -> None:
        self._fd = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)

    def read(self, at: int, size: int) -> bytes:
        """Return ``size`` bytes, fewer if the rest is not mapped; OSError if none is."""
        try:
            return os.pread(self._fd, size, at)
        except OSError as error:
            raise _at(error, "reading", at) from None

    def write(self, at: int, data: bytes) -> None:
        """Write ``data``; OSError if that is not possible."""
        while data:
            try:
                written = os.pwrite(self._fd, data, at)
            except OSError as error:
                raise _at(error, "writing", at) from None
            at, data = at + written, data[written:]

    def close(self) -> None:
        """Close the memory file."""
        os.close(self._fd)


def _at(error: OSError, does: str, at: int) -> OSError:
    """Return ``error`` with what was done where."""
    return OSError(error.errno, error.strerror, f"{does} its memory at {at:#x}")
