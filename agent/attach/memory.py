"""Memory that is read and written by address."""

import errno
import fcntl
import os
import time
from typing import Final, Protocol

from .errors import AttachError

#: Poll interval of a lock (seconds).
_POLL_S: Final = 0.02


class Memory(Protocol):
    """Memory of a process, or a file, where addresses are offsets."""

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes, fewer where the memory ends; OSError if it cannot be read."""

    def write(self, address: int, data: bytes) -> None:
        """Write ``data``; OSError if that is not possible."""


class FileMemory:
    """Memory that is the open file ``fd``; error messages call it ``name``."""

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self._name = name

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes, fewer where the memory ends; OSError if it cannot be read."""
        try:
            return os.pread(self._fd, size, address)
        except OSError as error:
            raise self._error(error.errno, "reading", address) from None

    def write(self, address: int, data: bytes) -> None:
        """Write ``data``; OSError if that is not possible."""
        while data:
            try:
                written_bytes = os.pwrite(self._fd, data, address)
            except OSError as error:
                raise self._error(error.errno, "writing", address) from None
            if not written_bytes:  # the process has ended
                raise self._error(errno.ESRCH, "writing", address)
            address, data = address + written_bytes, data[written_bytes:]

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _error(self, code: int | None, operation: str, address: int) -> OSError:
        """Return the error ``code`` with the operation and the address in place of a file name."""
        return OSError(code, os.strerror(code or 0), f"{operation} {self._name} at {address:#x}")


class ProcessMemory(FileMemory):
    """The memory of process ``pid``, read and written through /proc.

    ProcessLookupError if the process has ended.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC), "its memory")

    def lock(self, timeout_s: float) -> None:
        """Let only this process attach to the other one, until `close`.

        AttachError if another process still does so after ``timeout_s``.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    text = "another tfprof attaches to the process, or detaches from it: try again"
                    raise AttachError(text, "attach-busy") from None
                time.sleep(_POLL_S)
            else:
                return

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes, fewer where the memory ends; OSError if it cannot be read."""
        data = super().read(address, size)
        if not data:  # the process has ended
            raise self._error(errno.ESRCH, "reading", address)
        return data
