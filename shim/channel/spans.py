"""The span ring: one entry per step, or one for several short steps (docs/channel.md)."""

from __future__ import annotations

from ...formats import layout
from ...formats.layout import SPAN_MAX, SPAN_MIN, SPAN_TAG, SPAN_TOTAL, WORD
from ..guard import contain
from ..reentrant_guard import ReentrantGuard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Protocol

    from ..clock import ThreadId
    from .ring import Channel

    class Put(Protocol):
        """Puts a span, or one entry for several: times in ns, start on the monotonic clock."""

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
            __counted: int = 0,
        ) -> None:
            """Put the span."""


SHORT = 1000000  # ns: shorter steps share an entry until their times add up to this time

_HEAD, _TAIL, _OPEN = WORD["span_head"], WORD["span_tail"], WORD["span_open"]
_DROPPED, _STEP_NS = WORD["dropped_spans"], WORD["step_ns"]
_COUNTS, _TIMES, _FAILED = layout.COUNTS_AT // 8, layout.TIMES_AT // 8, layout.FAILED_AT // 8


def writer(channel: Channel, budgeted_kinds: set[int], threads: ThreadId) -> Put:  # noqa: C901, PLR0915 - for its cost
    """Return ``put(kind, start, duration, ordinal, key, flags, parent, count, counted)``.

    Times are in ns, start is on the monotonic clock. ``counted`` is the number of steps before this
    one that were only counted. Each is assumed to have lasted as long as this one.

    ``budgeted_kinds`` is the set of kinds whose time counts as time in steps. ``threads`` has the
    calling thread's ``tid``. ``put`` runs after every timed step, when the core's caches are cold,
    and access to an object takes longer than the work on it. For this reason ``put`` is a closure
    over local variables, which also hold copies of the words that only ``put`` writes.
    """
    words, view, pack, counts, short = channel.words, channel.view, layout.SPAN.pack_into, _COUNTS, SHORT
    times, failed, failed_flag = _TIMES, _FAILED, layout.FLAG_FAILED
    sampled_flag = layout.FLAG_SAMPLED
    spans_at, size, slots, head_at, step_at = layout.SPANS_AT, layout.SPAN_SIZE, layout.SPAN_COUNT, _HEAD, _STEP_NS
    guard = ReentrantGuard()
    is_owned, acquire, release = guard.fast_path()
    head, step_ns, limit = words[_HEAD], words[_STEP_NS], 0  # while the head is below the limit, an entry is free
    last_kind = is_budgeted = 0  # kind of the last span, and whether its time counts as time in steps
    # The open entry, which is being filled: the values that a step must have to join it, and its
    # sums. o_next is the ordinal of the next such step, 0 if no entry is open.
    o_next = o_kind = o_key = o_flags = o_parent = o_thread = 0
    o_at = o_total = o_tag = o_low = o_high = 0
    busy = False  # whether a put is under way and has the lock

    def wait(count: int) -> Callable[[], None] | None:
        """Wait for the lock and return the function that releases it.

        None if the lock cannot be taken; the span then counts as dropped.
        """
        nonlocal is_owned, acquire, release
        # If this thread has the lock but no put is under way, a signal handler interrupted a put
        # right after it took the lock. This put may use the lock, and leaves its release to the
        # other one. If the lock stays taken, other threads replace it.
        if not busy and is_owned():
            return _release_nothing
        lock = None if is_owned() else guard.take()
        is_owned, acquire, release = guard.fast_path()
        if lock is not None:
            return lock.release
        words[_DROPPED] += count
        return None

    def publish(kind: int, total: int) -> None:
        """Count the entry at the head, of ``total`` ns, as written."""
        nonlocal head, step_ns
        words[head_at] = head = head + 1
        words[times + kind] += total
        if kind in budgeted_kinds:
            words[step_at] = step_ns = step_ns + total

    def drop_if_full(kind: int, duration: int, count: int) -> bool:
        """Read how many entries are free; if none is free, count the span as dropped."""
        nonlocal limit, step_ns
        limit = min(words[_TAIL], head) + slots
        if head < limit:
            return False
        words[_DROPPED] += count
        words[times + kind] += duration
        if is_budgeted:
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
        nonlocal head, step_ns, last_kind, is_budgeted, busy
        nonlocal o_next, o_kind, o_key, o_flags, o_parent, o_thread, o_at, o_total, o_tag, o_low, o_high
        unlock = None
        try:
            thread = threads.tid
            unlock = wait(count + counted) if is_owned() or not acquire(False) else release
            # Steps that are only counted raise this word without the lock.
            if words[counts + kind] < ordinal + count - 1:  # noqa: PLR1730
                words[counts + kind] = ordinal + count - 1
            if flags & failed_flag:
                words[failed + kind] += count
            if unlock is None:
                return
            busy = True
            if kind != last_kind:
                last_kind, is_budgeted = kind, kind in budgeted_kinds
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
                    words[o_at + SPAN_TOTAL] = o_total = o_total + duration
                    words[o_at + SPAN_TAG] = o_tag = o_tag + 1
                    if duration < o_low:
                        words[o_at + SPAN_MIN] = o_low = duration
                    elif duration > o_high:
                        words[o_at + SPAN_MAX] = o_high = duration
                    if o_total < short:
                        o_next = ordinal + 1
                    else:
                        o_next = 0
                        publish(kind, o_total)
                    return
                o_next = 0
                publish(o_kind, o_total)
            mean = duration if count == 1 else duration // count
            if counted:
                start, duration = max(0, start - mean * counted), duration + mean * counted
                ordinal, count, flags = max(1, ordinal - counted), count + counted, flags | sampled_flag
            if head >= limit and drop_if_full(kind, duration, count):
                return
            at = spans_at + head % slots * size
            pack(view, at, start, duration, ordinal, count, kind, flags, key, thread, mean, mean, parent)
            if duration >= short or flags & sampled_flag:
                words[head_at] = head = head + 1
                words[times + kind] += duration
                if is_budgeted:
                    words[step_at] = step_ns = step_ns + duration
                return
            words[_OPEN] = head + 1
            o_next, o_kind, o_key, o_flags, o_parent, o_thread = ordinal + count, kind, key, flags, parent, thread
            o_at, o_total, o_low, o_high = at // 8, duration, mean, mean
            o_tag = count | kind << 32 | flags << 48
        except BaseException as error:
            if busy and unlock is not None:
                recover(count + counted)
            else:
                words[_DROPPED] += count + counted
            if not contain(error):
                raise
        finally:
            if unlock is not None:
                busy = False
                unlock()

    return put


def _release_nothing() -> None:
    """Release nothing: the lock was taken before this call."""
