"""A selected range of steps: its open end, and its text."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

#: The last step of a range without an end.
LAST_STEP: Final = (1 << 63) - 1


def end_of(steps: tuple[int, int]) -> int | None:
    """Return the last step of a range, None if the range is open."""
    return None if steps[1] == LAST_STEP else steps[1]


def spans_within(spans: pa.Table, steps: tuple[int, int] | None, since_ns: int) -> pa.Table:
    """Return the rows of SPANS with a number in ``steps`` that began at ``since_ns`` or later.

    An entry of several steps is returned if one of them is in the range. ``steps``: None for all;
    ``since_ns``: real time, 0 for all.
    """
    if steps is not None:
        last = pc.add(spans["ordinal"], pc.subtract(spans["count"], pa.scalar(1, pa.uint32())))
        is_in_range = pc.and_(
            pc.greater_equal(last, pa.scalar(steps[0], pa.uint64())),
            pc.less_equal(spans["ordinal"], pa.scalar(steps[1], pa.uint64())),
        )
        spans = spans.filter(is_in_range)
    return spans.filter(pc.greater_equal(spans["start_ns"], pa.scalar(since_ns, pa.int64()))) if since_ns else spans


def spans_since(spans: pa.Table, since_ns: int) -> pa.Table:
    """Return the rows of SPANS that ended at ``since_ns`` (real time) or later; all if it is 0."""
    ends = pc.add(spans["start_ns"], spans["total_ns"])
    return spans.filter(pc.greater_equal(ends, pa.scalar(since_ns, pa.int64()))) if since_ns else spans


def range_text(first: int, last: int) -> str:
    """Return the range as a user types it: `7`, `7-9`, or `7-` without an end."""
    return str(first) if first == last else f"{first}-{'' if last == LAST_STEP else last}"
