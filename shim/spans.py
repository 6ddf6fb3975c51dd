"""The span ring: one entry a step, or one for many where steps are shorter than a millisecond (docs/channel.md)."""

from __future__ import annotations

from . import layout
from .guard import stop
from .ring import WORD, Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from .clock import ThreadId
    from .ring import Channel

    class Put(Protocol):
        """Puts a span, or many: times in ns, start on the monotonic clock."""

        def __call__(
            self,
            __kind: int,
            __start: int,
            __duration: int,
            __ordinal: int,
            __key: int = 0,
            __flags: int = 0,
            __parent: int = 0,
            __count: int = 1,
        ) -> None:
            """Put it."""


SHORT = 1000000  # ns that an entry of put-together steps fills

_HEAD, _TAIL, _OPEN = WORD["span_head"], WORD["span_tail"], WORD["span_open"]
_DROPPED, _STEP_NS = WORD["dropped_spans"], WORD["step_ns"]
_COUNTS = layout.COUNTS_AT // 8
_TOTAL, _TAG, _LOW, _HIGH = 1, 3, 5, 6  # words of an entry; the tag is count | kind << 32 | flags << 48


class Entries(object):
    """The entries of one channel: written, left open for short steps to join, published.

    ``costed`` is the set of kinds whose time counts as the job's steps.
    """

    __slots__ = ("_channel", "_costed", "_words")

    def __init__(self, channel: Channel, costed: set[int]) -> None:
        self._channel = channel
        self._words = channel.words
        self._costed = costed

    def write(
        self,
        kind: int,
        start: int,
        duration: int,
        ordinal: int,
        key: int,
        flags: int,
        thread: int,
        parent: int,
        count: int,
    ) -> int:
        """Write a new entry; return where it lies (in words) if more may join it, else 0."""
        words = self._words
        head = words[_HEAD]
        if head - words[_TAIL] >= layout.SPAN_COUNT:
            words[_DROPPED] += count
            if kind in self._costed:
                words[_STEP_NS] += duration
            return 0
        at = layout.SPANS_AT + head % layout.SPAN_COUNT * layout.SPAN_SIZE
        each = duration // count
        layout.SPAN.pack_into(
            self._channel.view, at, start, duration, ordinal, count, kind, flags, key, thread, each, each, parent
        )
        if duration >= SHORT:
            self.publish(kind, duration)
            return 0
        words[_OPEN] = head + 1
        return at // 8

    def publish(self, kind: int, total: int) -> None:
        """Count the entry after the last, of ``total`` ns, as written."""
        words = self._words
        words[_HEAD] += 1
        if kind in self._costed:
            words[_STEP_NS] += total


def writer(channel: Channel, costed: set[int], threads: ThreadId) -> Put:  # noqa: C901 - one function, for its cost
    """Return ``put(kind, start, duration, ordinal, key, flags, parent, count)``; times in ns, start on the monotonic clock.

    ``threads`` knows the calling thread's ``tid``. It is a closure over plain variables, since it runs at every step.
    """
    words, turn, entries, counts, short = channel.words, Turn(), Entries(channel, costed), _COUNTS, SHORT
    take = turn.take
    # The entry that is being filled: what may join it, and what it holds. o_next is 0 when there is none.
    o_next = o_kind = o_key = o_flags = o_parent = o_thread = 0
    o_at = o_total = o_tag = o_low = o_high = 0

    def put(  # noqa: C901 - as above
        kind: int,
        start: int,
        duration: int,
        ordinal: int,
        key: int = 0,
        flags: int = 0,
        parent: int = 0,
        count: int = 1,
    ) -> None:
        nonlocal o_next, o_kind, o_key, o_flags, o_parent, o_thread, o_at, o_total, o_tag, o_low, o_high
        lock = None
        try:
            thread = threads.tid
            lock = take()
            words[counts + kind] += count
            if lock is None:
                words[_DROPPED] += count
                return
            if (
                ordinal == o_next
                and key == o_key
                and thread == o_thread
                and kind == o_kind
                and flags == o_flags
                and parent == o_parent
                and duration < short
                and count == 1
            ):
                o_next = ordinal + 1
                words[o_at + _TOTAL] = o_total = o_total + duration
                words[o_at + _TAG] = o_tag = o_tag + 1
                if duration < o_low:
                    words[o_at + _LOW] = o_low = duration
                elif duration > o_high:
                    words[o_at + _HIGH] = o_high = duration
                if o_total >= short:
                    o_next = 0
                    entries.publish(kind, o_total)
                return
            if o_next:
                o_next = 0
                entries.publish(o_kind, o_total)
            o_at = entries.write(kind, start, duration, ordinal, key, flags, thread, parent, count)
            if o_at:
                o_next, o_kind, o_key, o_flags, o_parent, o_thread = ordinal + count, kind, key, flags, parent, thread
                o_total, o_low, o_high = duration, duration // count, duration // count
                o_tag = count | kind << 32 | flags << 48
        except Exception as error:
            if not stop(error):
                raise
        finally:
            if lock is not None:
                lock.release()

    return put
