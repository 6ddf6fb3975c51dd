"""The step times of each kind of step."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from ...formats import layout
from ..store.columns import occurrences, pc
from .jobs import JobRow
from .kinds import KINDS_BY_NAME, kind_name, span_kind, step_kind_of
from .pace import curve
from .spread import Spread, spread
from .steps import SPECIAL, flagged, requested_steps, spans_of_kinds

#: Maximum number of points in a curve over the whole job.
CURVE_POINTS_MAX: Final = 32
#: Maximum number of functions with separate step times.
_FUNCTIONS_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The steps of one kind that have span entries: number, spread of their times, and a curve.

    The number includes the untimed steps of these entries. The spread covers the normal steps,
    which are neither traced nor setup steps. If there are none, it covers the traced and setup
    steps, and ``traced`` tells whether tfprof traced any of them. Failed steps never count.
    ``curve`` has mean times over the whole job. ``since``: if these are the steps since the kind
    became slower, the number of the first one; otherwise 0.
    """

    kind: str
    count: int
    spread: Spread
    traced: bool
    curve: list[float]
    since: int = 0


def step_times_of(row: JobRow, spans: pa.Table, functions: Mapping[int, str]) -> list[StepTimes]:
    """Return the step times of each kind: the job's main kind first, then by total time.

    Each function is a separate kind; ``functions`` are their names by key.
    """
    times_by_kind = (
        (kind, times_of_steps(kind_name(kind, functions), kind_spans))
        for kind_of_span in KINDS_BY_NAME.values()
        for kind, kind_spans in _by_kind(kind_of_span, spans_of_kinds(spans, (kind_of_span,)))
    )
    main_kind = KINDS_BY_NAME.get(row.step_kind)
    timed = [
        (span_kind(kind) != main_kind, -times.spread.total_ns, times)
        for kind, times in times_by_kind
        if times is not None
    ]
    return [times for _, _, times in sorted(timed, key=lambda entry: entry[:2])]


def median_step(row: JobRow, step_times: Collection[StepTimes], kinds: Collection[str]) -> StepTimes | None:
    """Return the untraced step times of one of ``kinds``, else of the job's main kind.

    ``step_times``: the result of `step_times_of`. None if no step of the main kind was timed.
    """
    main_times = [times for times in step_times if times.kind.partition(":")[0] == row.step_kind and not times.traced]
    return next((times for times in main_times if times.kind in kinds), next(iter(main_times), None))


def _by_kind(kind_of_span: int, spans: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Yield the kinds of steps in ``spans``, each with its spans.

    All ``spans`` have the span kind ``kind_of_span``. Each function is a kind; only the functions
    with the most span entries are yielded.
    """
    if kind_of_span != layout.FUNCTION:
        yield kind_of_span, spans
        return
    for key, _ in sorted(occurrences(spans["key"]), key=lambda key_count: -key_count[1])[:_FUNCTIONS_MAX]:
        yield step_kind_of(kind_of_span, key), spans.filter(pc.equal(spans["key"], pa.scalar(key, pa.uint32())))


def times_of_steps(name: str, spans: pa.Table) -> StepTimes | None:
    """Return the step times of ``spans``, all of the kind called ``name``; None without any."""
    succeeded_spans = spans.filter(pc.invert(flagged(spans, layout.FLAG_FAILED)))
    normal_spans = succeeded_spans.filter(pc.invert(flagged(succeeded_spans, SPECIAL)))
    times = spread(normal_spans if normal_spans.num_rows else succeeded_spans)
    if times is None:
        return None
    count = int(pc.sum(succeeded_spans["count"]).as_py())
    is_traced = (
        not normal_spans.num_rows
        and requested_steps(succeeded_spans) < count
        and bool(pc.any(flagged(succeeded_spans, layout.FLAG_TRACED)).as_py())
    )
    return StepTimes(name, count, times, is_traced, curve(spans, CURVE_POINTS_MAX))
