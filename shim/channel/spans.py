"""The span ring: one entry per step, or one for several short steps (docs/channel.md)."""

from __future__ import annotations

from ...formats import layout
from ...formats.layout import WORD
from ..guard import contain
from ..reentrant_guard import ReentrantGuard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Protocol

    from ..clock import ThreadId
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
            __others: int = 0,
        ) -> None:
            """Put the span."""


SHORT = 1000000  # ns: shorter steps share an entry, until their times add up to this

_HEAD, _TAIL, _OPEN = WORD["span_head"], WORD["span_tail"], WORD["span_open"]
_DROPPED, _STEP_NS = WORD["dropped_spans"], WORD["step_ns"]
_COUNTS, _TIMES, _FAILED = layout.COUNTS_AT // 8, layout.TIMES_AT // 8, layout.FAILED_AT // 8
_TOTAL, _TAG, _LOW, _HIGH = 1, 3, 5, 6  # words of an entry; the tag is count | kind << 32 | flags << 48


def writer(channel: Channel, budgeted_kinds: set[int], threads: ThreadId) -> Put:  # noqa: C901, PLR0915 - for its cost
    """Return ``put(kind, start, duration, ordinal, key, flags, parent, count, counted)``.

    Times are in ns, start is on the monotonic clock. ``counted`` is the number of steps before this
    one that were only counted. Each is taken to have lasted as long as this one.

    ``budgeted_kinds`` is the set of kinds whose time counts as time in steps. ``threads`` has the
    calling thread's ``tid``. ``put`` runs after every step, when the core's caches are cold:
    touching an object costs more than working on it. For this reason it is a closure over local
    variables, which also hold copies of the words that only it writes.
    """
    words, view, pack, counts, short = channel.words, channel.view, layout.SPAN.pack_into, _COUNTS, SHORT
    times, failed, ended_badly = _TIMES, _FAILED, layout.FLAG_FAILED
    sampled = layout.FLAG_SAMPLED
    spans_at, size, slots, head_at, step_at = layout.SPANS_AT, layout.SPAN_SIZE, layout.SPAN_COUNT, _HEAD, _STEP_NS
    guard = ReentrantGuard()
    owned, acquire, release = guard.fast_path()
    head, step_ns, limit = words[_HEAD], words[_STEP_NS], 0  # below the limit there is room
    last = costs = 0  # the kind put last, whether its time counts
    # The entry that is being filled: conditions to join it, and its sums. o_next is 0 if there is
    # none.
    o_next = o_kind = o_key = o_flags = o_parent = o_thread = 0
    o_at = o_total = o_tag = o_low = o_high = 0
    busy = False  # whether a put is under way; an exception may interrupt a thread just after it took the lock

    def wait(count: int) -> Callable[[], None] | None:
        """Wait for the lock and return its release; without it, count the span as dropped."""
        nonlocal owned, acquire, release
        if not busy and owned():  # re-entry; other threads that time out replace the lock
            return _nothing
        taken = None if owned() else guard.take()
        owned, acquire, release = guard.fast_path()
        if taken is not None:
            return taken.release
        words[_DROPPED] += count
        return None

    def publish(kind: int, total: int) -> None:
        """Count the current entry, of ``total`` ns, as written."""
        nonlocal head, step_ns
        words[head_at] = head = head + 1
        words[times + kind] += total
        if kind in budgeted_kinds:
            words[step_at] = step_ns = step_ns + total

    def full(kind: int, duration: int, count: int) -> bool:
        """Read how much of the ring is free; if nothing is, count the span as dropped."""
        nonlocal limit, step_ns
        limit = min(words[_TAIL], head) + slots
        if head < limit:
            return False
        words[_DROPPED] += count
        words[times + kind] += duration
        if costs:
            words[step_at] = step_ns = step_ns + duration
        return True

    def recover(count: int) -> None:
        """Restore the state from the channel after an exception in a put of ``count`` steps.

        These steps count as dropped.
        """
        nonlocal head, step_ns, o_next
        o_next, head, step_ns = 0, words[head_at], words[step_at]
        if words[_OPEN] == head + 1:  # the entry that was being filled
            words[head_at] = head = head + 1
        words[_DROPPED] += count

    def put(  # noqa: C901, PLR0912, PLR0915 - as above
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
        nonlocal head, step_ns, last, costs, busy
        nonlocal o_next, o_kind, o_key, o_flags, o_parent, o_thread, o_at, o_total, o_tag, o_low, o_high
        free = None
        try:
            thread = threads.tid
            free = wait(count + counted) if owned() or not acquire(False) else release
            # Steps that are only counted raise this word without the lock.
            if words[counts + kind] < ordinal + count - 1:  # noqa: PLR1730
                words[counts + kind] = ordinal + count - 1
            if flags & ended_badly:
                words[failed + kind] += count
            if free is None:
                return
            busy = True
            if kind != last:
                last, costs = kind, kind in budgeted_kinds
            if o_next:
                if (
                    ordinal == o_next
                    and duration < short
                    and key == o_key
                    and thread == o_thread
                    and kind == o_kind
                    and flags == o_flags
                    and parent == o_parent
                    and count == 1
                    and not counted
                ):
                    words[o_at + _TOTAL] = o_total = o_total + duration
                    words[o_at + _TAG] = o_tag = o_tag + 1
                    if duration < o_low:
                        words[o_at + _LOW] = o_low = duration
                    elif duration > o_high:
                        words[o_at + _HIGH] = o_high = duration
                    if o_total < short:
                        o_next = ordinal + 1
                    else:
                        o_next = 0
                        publish(kind, o_total)
                    return
                o_next = 0
                publish(o_kind, o_total)
            each = duration if count == 1 else duration // count
            if counted:
                start, duration = max(0, start - each * counted), duration + each * counted
                ordinal, count, flags = max(1, ordinal - counted), count + counted, flags | sampled
            if head >= limit and full(kind, duration, count):
                return
            at = spans_at + head % slots * size
            pack(view, at, start, duration, ordinal, count, kind, flags, key, thread, each, each, parent)
            if duration >= short or flags & sampled:
                words[head_at] = head = head + 1
                words[times + kind] += duration
                if costs:
                    words[step_at] = step_ns = step_ns + duration
                return
            words[_OPEN] = head + 1
            o_next, o_kind, o_key, o_flags, o_parent, o_thread = ordinal + count, kind, key, flags, parent, thread
            o_at, o_total, o_low, o_high = at // 8, duration, each, each
            o_tag = count | kind << 32 | flags << 48
        except BaseException as error:
            if busy and free is not None:
                recover(count + counted)
            else:
                words[_DROPPED] += count + counted
            if not contain(error):
                raise
        finally:
            if free is not None:
                busy = False
                free()

    return put


def _nothing() -> None:
    """Release nothing."""
