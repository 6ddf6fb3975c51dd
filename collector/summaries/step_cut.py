"""Cuts a traced step into parts that add up to its time, by the intervals that executions cover."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final

from .op_classes import (
    DEVICE,
    INPUT,
    ITERATOR_DEVICE,
    LAUNCH,
    PIPELINE_DEVICE,
    PRIORITY,
    WAITING_OPS,
    OpClass,
    class_of,
)
from .step_records import OpExecution, StepTrace

Interval = tuple[int, int]
#: The time without an execution: before the first one on the device, after the last one, between.
BEFORE, AFTER = "before", "after"
BETWEEN_OPS: Final = OpClass(LAUNCH, "between ops")


def covered(intervals: Iterable[Interval]) -> int:
    """Return the length of the union of ``intervals``, each (start, end)."""
    return sum(end - start for start, end in union(intervals))


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of ``intervals`` as disjoint intervals, sorted; empty ones are left out."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return merged


def exposed(intervals: Iterable[Interval], others: Iterable[Interval]) -> int:
    """Return the length of the part of the union of ``intervals`` that ``others`` do not cover."""
    covers = union(others)
    return covered([*intervals, *covers]) - covered(covers)


def overlaps(intervals: Sequence[Interval], disjoint: Sequence[Interval]) -> list[int]:
    """Return for each of ``intervals`` the time that ``disjoint`` covers, which is sorted."""
    starts = [start for start, _ in disjoint]
    lengths = [0, *accumulate(end - start for start, end in disjoint)]

    def until(t_ns: int) -> int:
        index = bisect_right(starts, t_ns)
        if not index:
            return 0
        start, end = disjoint[index - 1]
        return lengths[index - 1] + min(t_ns, end) - start

    return [max(0, until(end) - until(start)) for start, end in intervals]


def without(intervals: Sequence[Interval], removed: Sequence[Interval]) -> list[Interval]:
    """Return the parts of sorted disjoint ``intervals`` that sorted disjoint ``removed`` leave."""
    left: list[Interval] = []
    position = 0
    for start, end in intervals:
        while position < len(removed) and removed[position][1] <= start:
            position += 1
        at, since = position, start
        while at < len(removed) and removed[at][0] < end:
            left.append((since, removed[at][0]))
            since = max(since, removed[at][1])
            at += 1
        left.append((since, end))
    return [(start, end) for start, end in left if start < end]


def cut(step: StepTrace, phases: Mapping[str, str]) -> dict[OpClass, int]:
    """Return the time (ns) of each class in a traced step; the times add up to its duration.

    ``phases``: the phase of training of each node that has one. Executions that overlap count once.
    Work of tf.data on its own threads does not count, since the step does not wait for it there.
    """
    classes = {
        op_class: union(_clipped(intervals, step.duration_ns))
        for op_class, intervals in _by_class(step, phases).items()
    }
    times: dict[OpClass, int] = {}
    filled: list[Interval] = []
    filled_ns = 0
    for op_class in sorted(classes, key=lambda op_class: (PRIORITY.index(op_class.part), op_class.detail)):
        filled = union([*filled, *classes[op_class]])
        times[op_class] = covered(filled) - filled_ns
        filled_ns += times[op_class]
    for op_class, rest_ns in _uncovered(step, classes, filled).items():
        times[op_class] = times.get(op_class, 0) + rest_ns
    return {op_class: time_ns for op_class, time_ns in times.items() if time_ns}


def _by_class(step: StepTrace, phases: Mapping[str, str]) -> dict[OpClass, list[Interval]]:
    """Return the intervals of the step's executions by class."""
    waiting_threads = {execution.thread for execution in step.executions if execution.op in WAITING_OPS}
    intervals: dict[OpClass, list[Interval]] = defaultdict(list)
    for execution in step.executions:
        if execution.device == ITERATOR_DEVICE:
            # An iterator runs on the thread of the op that waits for it, or on threads of its own.
            if execution.thread in waiting_threads:
                intervals[OpClass(INPUT)].append(_interval(execution))
        elif execution.device != PIPELINE_DEVICE:
            intervals[class_of(execution, phases)].append(_interval(execution))
    return intervals


def _interval(execution: OpExecution) -> Interval:
    return execution.start_ns, execution.end_ns


def _clipped(intervals: Iterable[Interval], end_ns: int) -> list[Interval]:
    return [(max(0, start), min(end, end_ns)) for start, end in intervals if start < end_ns and end > 0]


def _uncovered(
    step: StepTrace, classes: Mapping[OpClass, list[Interval]], filled: list[Interval]
) -> dict[OpClass, int]:
    """Return the time without an execution: before, between and after those on the device."""
    device = [
        interval for op_class, intervals in classes.items() if op_class.part == DEVICE for interval in intervals
    ] or filled
    if not device:
        return {OpClass(BEFORE): step.duration_ns}
    first_ns, last_ns = min(start for start, _ in device), max(end for _, end in device)

    def rest(start: int, end: int) -> int:
        return end - start - covered((max(start, since), min(end, until)) for since, until in filled)

    return {
        OpClass(BEFORE): rest(0, first_ns),
        BETWEEN_OPS: rest(first_ns, last_ns),
        OpClass(AFTER): rest(last_ns, step.duration_ns),
    }
