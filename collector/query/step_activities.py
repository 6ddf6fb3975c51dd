"""Reads what the job's Python did around its steps."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from ...formats import activities, layout
from ..store.columns import pc, row_tuples
from ..summaries.kinds import FunctionNames
from ..summaries.step_records import Activity, NamedSum

_COLUMNS: Final = ("key", "parent", "flags", "count", "start_ns", "total_ns")


def activities_of(spans: pa.Table, thread: int, names: FunctionNames) -> tuple[Activity, ...]:
    """Return the activities of ``thread``, sorted by time; ``names``: their names by key.

    If an activity is within another one, its time is subtracted from the outer one by a further
    entry with a negative time. Marks of the job's code within steps are left out, since their time
    is also the time of ops.
    """
    rows = _activities(spans)
    rows = rows.filter(pc.equal(rows["thread"], pa.scalar(thread, pa.uint32())))
    return tuple(sorted(_entries(rows, dict(names)), key=lambda activity: activity.start_ns))


def _entries(rows: pa.Table, names: dict[int, str]) -> Iterator[Activity]:
    for key, parent, flags, count, start_ns, total_ns in row_tuples(rows, *_COLUMNS):
        in_step = bool(flags & layout.FLAG_IN_STEP)
        times = start_ns, start_ns + total_ns
        if in_step and activities.number_of(key) in activities.MARKS:
            continue
        yield Activity(activities.category_of(key), activities.label_of(key, names), *times, total_ns, count, in_step)
        if parent and not (in_step and activities.number_of(parent) in activities.MARKS):
            category, name = activities.category_of(parent), activities.label_of(parent, names)
            yield Activity(category, name, *times, -total_ns, count, in_step)


def pipeline_functions(
    spans: pa.Table, thread: int, names: FunctionNames, period: tuple[int, int]
) -> tuple[NamedSum, ...]:
    """Return the user's functions that ops of other threads called within ``period``.

    These functions belong to an input pipeline. The one with the most time comes first.
    """
    rows = _activities(spans)
    is_other = pc.not_equal(rows["thread"], pa.scalar(thread, pa.uint32()))
    starts = rows["start_ns"]
    first, last = (pa.scalar(time_ns, pa.int64()) for time_ns in period)
    rows = rows.filter(pc.and_(is_other, pc.and_(pc.greater_equal(starts, first), pc.less(starts, last))))
    return _sums(rows, activities.PYTHON_FUNCTION, names)


def marked_parts(spans: pa.Table, thread: int, names: FunctionNames) -> tuple[NamedSum, ...]:
    """Return the parts of steps that the job's code marks on ``thread``, the longest first."""
    rows = _activities(spans)
    rows = rows.filter(pc.equal(rows["thread"], pa.scalar(thread, pa.uint32())))
    return _sums(rows, activities.PART, names)


def _sums(rows: Any, category: int, names: FunctionNames) -> tuple[NamedSum, ...]:
    """Return the sums of the activities of a category by name, the longest first."""
    times: Counter[int] = Counter()
    calls: Counter[int] = Counter()
    for key, count, total_ns in row_tuples(rows, "key", "count", "total_ns"):
        if activities.number_of(key) == category:
            times[key] += total_ns
            calls[key] += count
    known = dict(names)
    return tuple(
        NamedSum(activities.label_of(key, known), total_ns, calls[key]) for key, total_ns in times.most_common()
    )


def _activities(spans: pa.Table) -> Any:
    return spans.filter(pc.equal(spans["kind"], pa.scalar(layout.ACTIVITY, pa.uint16())))
