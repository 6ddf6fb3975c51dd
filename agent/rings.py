"""Reads the two rings of a channel; nothing in them is trusted (docs/channel.md)."""

import os
from typing import NamedTuple

from ..formats import layout
from ..formats.errors import FormatError
from ..formats.layout import WORD
from .old_channels import Adapter

_HEAD, _TAIL, _RING_SIZE = WORD["head"], WORD["tail"], WORD["ring_size"]
_SPAN_HEAD, _SPAN_OPEN, _SPAN_TAIL = WORD["span_head"], WORD["span_open"], WORD["span_tail"]


class InvalidChannelError(FormatError):
    """The content of a channel is invalid, or not set up yet."""

    slug = "bad-channel"


class RingSlice(NamedTuple):
    """Whole records or entries from a ring, numbered `first` to `last`.

    `end` is the position in the ring after the last of them.
    """

    data: bytes
    first: int
    last: int
    end: int


class RecordRing:
    """The ring of records in the channel ``fd``; ``words`` are those of its control page.

    `tail` is the position up to which the ring is released. ``adapter`` is that of an earlier
    version. Methods raise InvalidChannelError if the content is invalid.
    """

    def __init__(self, fd: int, words: "memoryview[int]", adapter: Adapter | None) -> None:
        self.tail = words[_TAIL]
        self._fd = fd
        self._words = words
        self._adapter = adapter
        self._size = 0

    def unread(self, start: int) -> int:
        """Return the number of record bytes from ``start`` on."""
        unread: int = self._words[_HEAD] - start
        if not unread:
            return 0
        if not 0 < unread <= self._checked_size():
            raise InvalidChannelError(f"{unread} bytes unread in a ring of {self._size}")
        return unread

    def filled_share(self, start: int) -> float:
        """Return the share of the ring that the records from ``start`` on fill."""
        return unread / self._size if (unread := self.unread(start)) else 0.0

    def read(self, start: int, limit: int, *, strictly: bool = False) -> RingSlice | None:
        """Return whole records from ``start`` on; None if there are none.

        Together they have at most ``limit`` bytes. A first record that is larger is returned alone,
        or not at all with ``strictly``.
        """
        unread = self.unread(start)
        if not unread:
            return None
        ring_slice = _whole_records(self._copy(start, min(unread, limit)), start)
        if ring_slice is None:
            size = int.from_bytes(self._copy(start, 4), "little")
            if self._adapter is not None and layout.RECORD_MAX < size <= unread:
                header = self._copy(start, layout.RECORD.size)
                seq = layout.RECORD.unpack(header)[3]
                return RingSlice(self._adapter.too_large_record(header), seq, seq, start + size)
            if not layout.RECORD.size <= size <= min(unread, layout.RECORD_MAX):
                raise InvalidChannelError(f"a record of {size} bytes where {unread} are unread")
            if strictly and size > limit:
                return None
            ring_slice = _whole_records(self._copy(start, size), start)
        if ring_slice is None:
            raise InvalidChannelError("a record that changes while it is read")
        return ring_slice if self._adapter is None else ring_slice._replace(data=self._adapter.records(ring_slice.data))

    def release(self, tail: int) -> None:
        """Release the bytes up to ``tail``."""
        self.tail = self._words[_TAIL] = tail

    def _checked_size(self) -> int:
        """Return the size of the ring; it is read once and checked against the file."""
        if not self._size:
            size, file_size = self._words[_RING_SIZE], os.fstat(self._fd).st_size
            if not layout.RING_MIN <= size <= layout.RING_MAX or layout.RING_AT + size > file_size:
                raise InvalidChannelError(f"a ring of {size} bytes in a file of {file_size}")
            self._size = size
        return self._size

    def _copy(self, start: int, size: int) -> bytes:
        """Return ``size`` bytes of the ring from ``start`` on."""
        offset = start % self._size
        before_end = min(size, self._size - offset)
        data = os.pread(self._fd, before_end, layout.RING_AT + offset)
        if before_end < size:
            data += os.pread(self._fd, size - before_end, layout.RING_AT)
        if len(data) != size:
            raise InvalidChannelError("a ring that ends early")
        return data


class SpanRing:
    """The ring of span entries; arguments and `tail` as for RecordRing."""

    def __init__(self, fd: int, words: "memoryview[int]") -> None:
        self.tail = words[_SPAN_TAIL]
        self._fd = fd
        self._words = words

    def unread(self, start: int, *, ended: bool) -> int:
        """Return the number of entries from ``start`` on.

        If the job has ``ended``, the entry that was being filled counts, too.
        """
        head: int = self._words[_SPAN_HEAD]
        unread = head - start
        if ended and self._words[_SPAN_OPEN] == head + 1 and unread < layout.SPAN_COUNT:
            unread += 1
        if not 0 <= unread <= layout.SPAN_COUNT:
            raise InvalidChannelError(f"{unread} entries unread in a span ring of {layout.SPAN_COUNT}")
        return unread

    def read(self, start: int, limit: int, *, ended: bool) -> RingSlice | None:
        """Return at most ``limit`` entries from ``start`` on, None if there are none.

        The entries are numbered from 1.
        """
        unread = min(self.unread(start, ended=ended), limit)
        if not unread:
            return None
        slot = start % layout.SPAN_COUNT
        before_end = min(unread, layout.SPAN_COUNT - slot)
        data = os.pread(self._fd, before_end * layout.SPAN_SIZE, layout.SPANS_AT + slot * layout.SPAN_SIZE)
        if before_end < unread:
            data += os.pread(self._fd, (unread - before_end) * layout.SPAN_SIZE, layout.SPANS_AT)
        return RingSlice(data, start + 1, start + unread, start + unread)

    def release(self, tail: int) -> None:
        """Release the entries up to ``tail``."""
        self.tail = self._words[_SPAN_TAIL] = tail


def _whole_records(data: bytes, start: int) -> RingSlice | None:
    """Return the whole records at the start of ``data``, None if the first one is incomplete."""
    offset, first, last = 0, 0, 0
    header = layout.RECORD
    while len(data) - offset >= header.size:
        size, _, _, seq = header.unpack_from(data, offset)[:4]
        if size < header.size or seq <= last:
            raise InvalidChannelError(f"an invalid record header: number {seq} after number {last}, size {size} bytes")
        if size > len(data) - offset:
            break
        first, last = first or seq, seq
        offset += size
    return RingSlice(data[:offset] if offset < len(data) else data, first, last, start + offset) if offset else None
