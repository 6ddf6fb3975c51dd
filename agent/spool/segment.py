"""Segments, the files of a spool: a header, and whole messages with checksums.

=======================  ======================================================================
8 bytes, u32, u32, u64   `TFPSPOOL`, version, 0, time of creation (real ns)
for each message:
u32, u32                 CRC-32 of what follows, size of the body
40 bytes                 the head of the message, as on the wire (docs/wire.md)
…                        its body
=======================  ======================================================================

Numbers are little-endian.
"""

import os
import re
import stat
import struct
import time
import zlib
from typing import Final, NamedTuple

from ...formats import wire
from ...formats.errors import FormatError, VersionError
from ...formats.private_files import open_regular
from ...formats.wire import Head

_MAGIC: Final = b"TFPSPOOL"
VERSION: Final = 1
HEADER: Final = struct.Struct("<8sIIQ")
_PREFIX: Final = struct.Struct("<II")
#: Size from which on a segment gets no further message, and the largest possible size.
SEGMENT_BYTES: Final = 8 << 20
_SEGMENT_MAX: Final = SEGMENT_BYTES + 2 * wire.BODY_MAX
_NAME: Final = re.compile(r"[0-9]{10}\.segment")


class DamagedError(FormatError):
    """The rest of a segment cannot be read."""

    slug = "spool-damaged"


class Message(NamedTuple):
    """A message of a segment; it lies from ``at`` to ``end``."""

    head: Head
    body: bytes
    at: int
    end: int


def name(number: int) -> str:
    """Return the name of segment ``number``."""
    return f"{number:010}.segment"


def list_numbers(folder: str) -> list[int]:
    """Return the numbers of the segments in ``folder``, in order; OSError on failure."""
    return sorted(int(entry[:10]) for entry in os.listdir(folder) if _NAME.fullmatch(entry))


def header() -> bytes:
    """Return the first bytes of a segment that begins now."""
    return HEADER.pack(_MAGIC, VERSION, 0, time.time_ns())


def packed(head: Head, body: bytes) -> bytes:
    """Return a message as it lies in a segment."""
    data = wire.pack(head) + body
    return _PREFIX.pack(zlib.crc32(data), len(body)) + data


def check(info: os.stat_result) -> None:
    """Raise DamagedError if a file cannot be a segment: it may block, or be anybody's, or huge."""
    if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid():
        raise DamagedError("it is not a regular file of this user's")
    if info.st_size > _SEGMENT_MAX:
        raise DamagedError(f"it has {info.st_size} bytes")


class SegmentReader:
    """Reads the messages of the segment at ``path``, of which nothing is trusted.

    DamagedError if it is no segment, VersionError if it is of another version.
    """

    def __init__(self, path: str) -> None:
        try:
            check(os.lstat(path))  # opening a device may have side effects
            self._fd = open_regular(path, os.O_RDONLY)
        except OSError as error:
            raise DamagedError(f"it cannot be opened: {error.strerror}") from None
        try:
            check(os.fstat(self._fd))
            self.size = os.fstat(self._fd).st_size
            self.created_ns = _created_ns(os.pread(self._fd, HEADER.size, 0))
        except FormatError:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def read(self, at: int) -> Message | None:
        """Return the message at ``at``, None at the end of the segment.

        DamagedError if the rest of the segment is torn or damaged; OSError if it cannot be read.
        """
        if at >= self.size:
            return None
        start = os.pread(self._fd, _PREFIX.size, at)
        checksum, body_size = _PREFIX.unpack(start) if len(start) == _PREFIX.size else (0, wire.BODY_MAX + 1)
        end = at + _PREFIX.size + wire.HEAD.size + body_size
        if body_size > wire.BODY_MAX or end > self.size:
            raise DamagedError(f"its last {self.size - at} bytes are no whole message")
        data = os.pread(self._fd, wire.HEAD.size + body_size, at + _PREFIX.size)
        if zlib.crc32(data) != checksum:
            raise DamagedError(f"its last {self.size - at} bytes have a wrong checksum")
        return Message(wire.unpack(data[: wire.HEAD.size]), data[wire.HEAD.size :], at, end)


def _created_ns(data: bytes) -> int:
    magic, version, _, created_ns = HEADER.unpack(data) if len(data) == HEADER.size else (b"", 0, 0, 0)
    if magic != _MAGIC:
        raise DamagedError("it does not begin as a segment does")
    if version != VERSION:
        raise VersionError("spool", version, VERSION)
    return int(created_ns)
