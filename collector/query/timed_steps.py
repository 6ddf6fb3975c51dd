"""Reads the timed steps of a job's main kind, and the spans beside them."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import layout, span_kinds
from ..store.columns import pc, row_tuples
from ..store.protocols import JobReader
from ..summaries.jobs import channel_words, functions_of
from ..summaries.kinds import (
    FunctionNames,
    by_kind,
    function_key,
    kind_name,
    main_kind_of,
    span_kind,
    step_kind_of,
)
from ..summaries.step_records import OtherSpan, TimedSteps
from ..summaries.steps import SPECIAL

#: Maximum number of latest rows of timed steps that are read.
TIMED_ROWS_MAX: Final = 100_000
#: Kind of step -> the kinds of spans that may enclose it.
_ENCLOSING: Final = {layout.TEST_BATCH: (layout.EVALUATE,), layout.PREDICT_BATCH: (layout.PREDICT,)}
_TIMED_COLUMNS: Final = ["ordinal", "count", "start_ns", "total_ns", "flags", "key"]


def main_kind(job: JobReader, spans: pa.Table) -> int | None:
    """Return the main kind of a job's timed steps, None without any."""
    kinds: dict[int, Any] = dict.fromkeys(pc.unique(spans["kind"]).to_pylist())
    return main_kind_of(kinds, by_kind(channel_words(job.info).get("times")))


def timed_steps(job: JobReader, spans: pa.Table) -> tuple[str, tuple[TimedSteps, ...]]:
    """Return the main kind of step of a job, and its timed steps; '' if none was timed."""
    kind = main_kind(job, spans)
    if kind is None:
        return "", ()
    return span_kinds.name_of(kind), steps_of_kind(spans, kind, functions_of(job.info)).steps


class StepsOfKind(NamedTuple):
    """The latest steps of one kind on a thread, and all other spans since then, sorted by time.

    The thread is the one with the most time in these steps.
    """

    steps: tuple[TimedSteps, ...]
    others: tuple[OtherSpan, ...]
    thread: int


def steps_of_kind(spans: pa.Table, kind: int, names: FunctionNames) -> StepsOfKind:
    """Return the steps of ``kind`` in ``spans``, which have at least one.

    ``names``: the names of functions by key.
    """
    is_of_kind = pc.equal(spans["kind"], pa.scalar(span_kind(kind), pa.uint16()))
    if function_key(kind):
        is_of_kind = pc.and_(is_of_kind, pc.equal(spans["key"], pa.scalar(function_key(kind), pa.uint32())))
    steps = spans.filter(is_of_kind)
    threads = steps.group_by("thread").aggregate([("total_ns", "sum")]).sort_by([("total_ns_sum", "descending")])
    thread = threads["thread"][0]
    steps = _latest(steps.filter(pc.equal(steps["thread"], thread)))
    rows = row_tuples(steps, *_TIMED_COLUMNS)
    others = spans.filter(pc.and_(pc.invert(is_of_kind), pc.greater_equal(spans["start_ns"], steps["start_ns"][0])))
    return StepsOfKind(
        tuple(
            TimedSteps._make((*row[:4], not row[4] & SPECIAL, row[5], bool(row[4] & layout.FLAG_SAMPLED)))
            for row in rows
        ),
        tuple(_other_spans(others, thread, span_kind(kind), names)),
        thread.as_py(),
    )


def _latest(spans: pa.Table) -> pa.Table:
    """Return the latest TIMED_ROWS_MAX spans, sorted by time."""
    return spans.sort_by("start_ns").slice(max(0, spans.num_rows - TIMED_ROWS_MAX))


def _other_spans(spans: pa.Table, thread: Any, kind: int, names: FunctionNames) -> Iterator[OtherSpan]:
    """Yield the latest spans that can explain the pauses of ``thread`` between steps of ``kind``.

    Spans that enclose steps are left out, and so are runs of other threads that fill queues in the
    background, and activities, which are no steps.
    """
    enclosing = [layout.EPOCH, layout.FIT, layout.ACTIVITY, *_ENCLOSING.get(kind, ()), *span_kinds.others()]
    is_enclosing = pc.is_in(spans["kind"], value_set=pa.array(enclosing, pa.uint16()))
    is_background = pc.and_(
        pc.equal(spans["kind"], pa.scalar(layout.INPUT, pa.uint16())), pc.not_equal(spans["thread"], thread)
    )
    others = _latest(spans.filter(pc.invert(pc.or_(is_enclosing, is_background))))
    for other, key, start_ns, total_ns in row_tuples(others, "kind", "key", "start_ns", "total_ns"):
        yield OtherSpan(kind_name(step_kind_of(other, key), names), start_ns, start_ns + total_ns)
