"""The span ring: one entry per step, or one for several short steps (docs/channel.md)."""

from __future__ import annotations

from ...formats import layout
from ...formats.layout import SECOND_NS, SPAN_MAX, SPAN_MIN, SPAN_TAG, SPAN_TOTAL, WORD
from ..guard import contain
from ..reentrant_guard import ReentrantGuard

TYPE_CHECKING = False  # marks load this module in processes that need no channel yet
if TYPE_CHECKING:
    from .ring import Channel

SHORT = 1000000  # ns: shorter steps share an entry until their times add up to this time

_HEAD, _TAIL, _OPEN = WORD["span_head"], WORD["span_tail"], WORD["span_open"]
_DROPPED, _STEP_NS = WORD["dropped_spans"], WORD["step_ns"]
_COUNTS, _TIMES, _FAILED = layout.COUNTS_AT // 8, layout.TIMES_AT // 8, layout.FAILED_AT // 8


class SpanWriter(object):
    """Writes the span ring; the time of ``budgeted_kinds`` counts as time in steps."""

    def __init__(self, channel: Channel, budgeted_kinds: set[int]) -> None:
        self._words = channel.words
        self._view = channel.view
        self._threads = channel.threads
        self._budgeted_kinds = budgeted_kinds
        self._guard = ReentrantGuard()
        # The open entry, which is being filled: what a step must have to join it, and its words.
        self._joining: tuple[int, ...] | None = None
        self._open_at = 0

    def put(
        self,
        kind: int,
        start: int,
        duration: int,
        ordinal: int,
        key: int = 0,
        flags: int = 0,
        parent: int = 0,
        count: int = 1,
        counted: int = 0,
    ) -> None:
        """Put a span, or one entry for ``count`` steps.

        Times are in ns, start is on the monotonic clock. ``counted`` is the number of steps before
        this one that were only counted. Each is assumed to have lasted as long as this one.
        """
        words, lock = self._words, None
        try:
            values = (kind, flags, key, self._threads.tid, parent)
            lock = self._guard.take()
            # Steps that are only counted raise this word without the lock.
            if words[_COUNTS + kind] < ordinal + count - 1:  # noqa: PLR1730 - no call, which a handler may interrupt
                words[_COUNTS + kind] = ordinal + count - 1
            if flags & layout.FLAG_FAILED:
                words[_FAILED + kind] += count
            # An entry is published within about a second, even if steps are rare.
            may_join = duration < SHORT and count == 1 and not counted and start < words[self._open_at] + SECOND_NS
            if lock is None:  # a signal handler interrupted a put, or another thread has the lock for too long
                words[_DROPPED] += count + counted
            elif may_join and self._joining == (ordinal, *values):
                self._join(duration, ordinal, values)
            else:
                self._close()
                self._write(start, duration, ordinal, count, counted, values)
        except BaseException as error:
            words[_DROPPED] += count + counted
            if lock is not None:  # publish an entry that was being filled
                self._joining = None
                if words[_OPEN] == words[_HEAD] + 1:
                    words[_HEAD] += 1
            if not contain(error):
                raise
        finally:
            if lock is not None:
                lock.release()

    def _join(self, duration: int, ordinal: int, values: tuple[int, ...]) -> None:
        """Add a step to the open entry."""
        words, at = self._words, self._open_at
        words[at + SPAN_TOTAL] += duration
        words[at + SPAN_TAG] += 1  # the lowest bits are the number of steps
        words[at + SPAN_MIN] = min(words[at + SPAN_MIN], duration)
        words[at + SPAN_MAX] = max(words[at + SPAN_MAX], duration)
        self._joining = (ordinal + 1, *values)
        if words[at + SPAN_TOTAL] >= SHORT:
            self._close()

    def _write(
        self, start: int, duration: int, ordinal: int, count: int, counted: int, values: tuple[int, ...]
    ) -> None:
        """Write a new entry, which stays open if its steps are short."""
        words, (kind, flags, key, thread, parent) = self._words, values
        mean = duration // count
        if counted:
            start, duration = max(0, start - mean * counted), duration + mean * counted
            ordinal, count, flags = max(1, ordinal - counted), count + counted, flags | layout.FLAG_SAMPLED
        head = words[_HEAD]
        if head - min(words[_TAIL], head) >= layout.SPAN_COUNT:
            words[_DROPPED] += count
            self._add_time(kind, duration)
            return
        at = layout.SPANS_AT + head % layout.SPAN_COUNT * layout.SPAN_SIZE
        numbers = start, duration, ordinal, count, kind, flags, key, thread, mean, mean, parent
        layout.SPAN.pack_into(self._view, at, *numbers)
        self._open_at, self._joining = at // 8, (ordinal + count, *values)
        if duration >= SHORT or flags & layout.FLAG_SAMPLED:
            self._close()
        else:
            words[_OPEN] = head + 1

    def _close(self) -> None:
        """Publish the open entry, if any."""
        joining, self._joining = self._joining, None
        if joining is not None:
            self._words[_HEAD] += 1
            self._add_time(joining[1], self._words[self._open_at + SPAN_TOTAL])

    def _add_time(self, kind: int, duration: int) -> None:
        self._words[_TIMES + kind] += duration
        if kind in self._budgeted_kinds:
            self._words[_STEP_NS] += duration
