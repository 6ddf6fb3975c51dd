"""Writes one segment of a spool."""

import contextlib
import os
import time

from . import segment


class SegmentWriter:
    """The segment at ``path``, which must not exist yet.

    `size` counts the bytes of whole messages. A method that raises OSError has first cut off what
    was not written, or not made durable.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self.created_ns = time.time_ns()
        self._durable_size = 0
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def append(self, data: bytes) -> None:
        """Append ``data``."""
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self._fd, memoryview(data)[written:], self.size + written)
        except OSError:
            self._truncate(self.size)
            raise
        self.size += written

    def sync(self) -> None:
        """Make all that was appended durable."""
        try:
            os.fdatasync(self._fd)
        except OSError:
            self._truncate(self._durable_size)
            raise
        self._durable_size = self.size

    @property
    def unsynced_bytes(self) -> int:
        """The bytes that are not durable yet."""
        return self.size - self._durable_size

    def _truncate(self, size: int) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, size)
        self.size = size

    def close(self) -> bool:
        """Close the file; remove it if no message is in it. Return whether it stays."""
        os.close(self._fd)
        is_used = self.size > segment.HEADER.size
        if not is_used:
            with contextlib.suppress(OSError):
                os.unlink(self.path)
        return is_used
