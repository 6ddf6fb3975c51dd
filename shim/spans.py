"""The span ring: one entry a step, or one for many where steps are shorter than a millisecond (docs/channel.md)."""

from . import layout
from .guard import stop
from .ring import WORD, Turn

SHORT = 1000000  # ns that an entry of put-together steps fills

_HEAD, _TAIL, _OPEN = WORD["span_head"], WORD["span_tail"], WORD["span_open"]
_DROPPED, _STEP_NS = WORD["dropped_spans"], WORD["step_ns"]
_COUNTS = layout.COUNTS_AT // 8
_FIRST, _SIZE, _SLOTS = layout.SPANS_AT // 8, layout.SPAN_SIZE // 8, layout.SPAN_COUNT
_NONE = -1


def writer(channel, costed, threads):
    """Return ``put(kind, start, duration, ordinal, key, flags, parent, count)`` for ``channel``; times in ns, start monotonic.

    ``costed`` is the set of kinds whose time counts as the job's steps, ``threads`` knows the calling thread's ``tid``. It is a closure, since it runs at every step.
    """
    words, turn = channel.words, Turn()
    # The entry that is being filled: where it lies, and what it holds. o_tag is count | kind << 32 | flags << 48.
    o_kind, o_key, o_flags, o_thread, o_parent, o_next = _NONE, 0, 0, 0, 0, 0
    o_at = o_total = o_tag = o_low = o_high = 0

    def publish(kind, total):
        """Count the entry after the last as written."""
        words[_HEAD] += 1
        if kind in costed:
            words[_STEP_NS] += total

    def write(kind, start, duration, ordinal, key, flags, thread, parent, count):
        """Write a new entry and leave it open if more may join it."""
        nonlocal o_kind, o_key, o_flags, o_thread, o_parent, o_next, o_at, o_total, o_tag, o_low, o_high
        if o_kind != _NONE:
            publish(o_kind, o_total)
            o_kind = _NONE
        head = words[_HEAD]
        if head - words[_TAIL] >= _SLOTS:
            words[_DROPPED] += count
            if kind in costed:
                words[_STEP_NS] += duration
            return
        at = layout.SPANS_AT + head % _SLOTS * layout.SPAN_SIZE
        each = duration // count
        layout.SPAN.pack_into(
            channel.view, at, start, duration, ordinal, count, kind, flags, key, thread, each, each, parent
        )
        if duration >= SHORT:
            publish(kind, duration)
            return
        words[_OPEN] = head + 1
        o_kind, o_key, o_flags, o_thread, o_parent, o_next = kind, key, flags, thread, parent, ordinal + count
        o_at, o_total, o_low, o_high = at // 8, duration, each, each
        o_tag = count | kind << 32 | flags << 48

    def put(kind, start, duration, ordinal, key=0, flags=0, parent=0, count=1):
        nonlocal o_kind, o_next, o_total, o_tag, o_low, o_high
        try:
            thread = threads.tid
            lock = turn.take()
            if lock is None:
                words[_COUNTS + kind] += count
                words[_DROPPED] += count
                return
            try:
                words[_COUNTS + kind] += count
                if (
                    kind != o_kind
                    or ordinal != o_next
                    or key != o_key
                    or flags != o_flags
                    or thread != o_thread
                    or parent != o_parent
                    or duration >= SHORT
                    or count != 1
                ):
                    write(kind, start, duration, ordinal, key, flags, thread, parent, count)
                    return
                o_next += 1
                o_total += duration
                o_tag += 1
                words[o_at + 1] = o_total
                words[o_at + 3] = o_tag
                if duration < o_low:
                    words[o_at + 5] = o_low = duration
                elif duration > o_high:
                    words[o_at + 6] = o_high = duration
                if o_total >= SHORT:
                    publish(kind, o_total)
                    o_kind = _NONE
            finally:
                lock.release()
        except Exception as error:
            if not stop(error):
                raise

    return put
