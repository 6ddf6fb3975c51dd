"""Summary of one job: phases, step times, top ops, host use, warnings and advice."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import pyarrow as pa

from ...formats import layout
from ..advice.table import CHECKERS
from ..store import catalog
from ..store.columns import occurrences, pc
from ..store.protocols import JobReader, StoreReader
from ..summaries.events import EventSummary, events
from ..summaries.host import Series, cpus, host_series, job_series
from ..summaries.jobs import JobRow, functions_of, integer_of, job_row
from ..summaries.kinds import KINDS_BY_NAME, kind_name, span_kind, step_kind_of
from ..summaries.pace import curve
from ..summaries.spans import span_tree
from ..summaries.spread import Spread, spread
from ..summaries.stages import Stage, stages
from ..summaries.steps import SPECIAL, flagged, spans_of_kinds
from ..summaries.top import TopOp
from .advising import advise
from .alerts import stored_alerts
from .engine import Selection
from .explanations import cost_note, missed_steps_note, untraced_reason
from .ranking import rank_ops
from .selection import ids_of
from .surroundings import host_samples

#: Maximum number of points in a curve over the whole job.
CURVE_POINTS_MAX: Final = 32
#: Maximum number of functions with separate step times.
_FUNCTIONS_MAX: Final = 16
#: Slug of the checker that only repeats the table of ops.
_OPS_CHECKER: Final = "expensive"


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The steps of one kind that have span entries: number, spread of their times, and a curve.

    The number includes the untimed steps of these entries. The spread covers the normal steps,
    which are neither traced nor setup steps. If there are none, it covers the traced and setup
    steps, and ``traced`` tells whether any of them was traced. Failed steps never count. ``curve``
    has mean times over the whole job.
    """

    kind: str
    count: int
    spread: Spread
    traced: bool
    curve: list[float]


class TopOps(NamedTuple):
    """The op types of ``steps`` traced steps, the largest median time first.

    ``why`` is the reason if there are none.
    """

    steps: int
    kinds: dict[str, int]
    ops: list[TopOp]
    why: str | None


class AdviceItem(NamedTuple):
    """One piece of advice."""

    slug: str
    title: str
    text: str
    line: str
    todo: str  # the remedy; the field has the name of the JSON key


@dataclass(frozen=True, slots=True)
class Overview:
    """Summary of one job; durations are in ns, points in time in real ns."""

    job: JobReader
    row: JobRow
    tags: tuple[str, ...]
    stages: list[Stage]
    steps: list[StepTimes]
    ops: TopOps
    host: str
    cpus: int | None
    samples: int
    job_series: list[Series]
    host_series: list[Series]
    alerts: list[str]
    warnings: list[EventSummary]
    notes: list[str]
    advice: list[AdviceItem]


def overview(store: StoreReader, selector: str, *, with_advice: bool = True) -> Overview:
    """Return the summary of the job that ``selector`` names, with advice if ``with_advice``.

    All parts are read from one snapshot of the job. NoSuchJobError unless ``selector`` selects one
    job.
    """
    job = store.job(selector)
    short_id = ids_of([job])[job.info.hex]
    return job.on_one_snapshot(lambda snapshot: _overview(snapshot, short_id, with_advice))


def _overview(job: JobReader, short_id: str, with_advice: bool) -> Overview:
    now_ns = time.time_ns()
    spans = job.table("spans")
    row = job_row(_current_info(job, spans), short_id, now_ns)
    samples = job.table("samples")
    host_rows = host_samples(job, samples)
    cores = cpus(host_rows)
    tree = span_tree(spans, functions_of(job.info), live=job.info.state == catalog.RUNNING)
    return Overview(
        job=job,
        row=row,
        tags=job.tags(),
        stages=stages(row, tree, spans, now_ns),
        steps=step_times_of(row, spans, functions_of(job.info)),
        ops=_top_ops(job),
        host=row.host,
        cpus=cores,
        samples=samples.num_rows,
        job_series=job_series(samples, cores),
        host_series=host_series(host_rows),
        alerts=[f"{job_alert.text} [{job_alert.alert.slug}]" for job_alert in stored_alerts(job)],
        warnings=[event for event in events(job.table("events")) if not event.is_harmless],
        notes=[text for text in (missed_steps_note(job), cost_note(job, row)) if text],
        advice=_advice(job) if with_advice else [],
    )


def _current_info(job: JobReader, spans: pa.Table) -> catalog.JobInfo:
    """Return the info of a job with counters that include its stored steps.

    The counters in the job file of a running job are up to five seconds old.
    """
    counters = job.info.counters
    counts, times = (
        {**stored} if isinstance(stored := counters.get(name), Mapping) else {} for name in ("counts", "times")
    )
    last_ordinals = pc.add(spans["ordinal"], pc.subtract(spans["count"], pa.scalar(1, pa.uint32())))
    by_kind = pa.table({"kind": spans["kind"], "last": last_ordinals, "time": spans["total_ns"]}).group_by("kind")
    for kind_row in by_kind.aggregate([("last", "max"), ("time", "sum")]).to_pylist():
        kind = kind_name(kind_row["kind"])
        counts[kind] = max(integer_of(counts, kind), kind_row["last_max"])
        times[kind] = max(integer_of(times, kind), kind_row["time_sum"])
    traced = max(integer_of(counters, "traced"), job.table("traces", ("trace",)).num_rows)
    return replace(job.info, counters={**counters, "counts": counts, "times": times, "traced": traced})


def step_times_of(row: JobRow, spans: pa.Table, functions: Mapping[int, str]) -> list[StepTimes]:
    """Return the step times of each kind: the job's main kind first, then by total time.

    Each function is a separate kind; ``functions`` are their names by key.
    """
    times_by_kind = (
        (kind, _step_times(kind_name(kind, functions), kind_spans))
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


def _step_times(name: str, spans: pa.Table) -> StepTimes | None:
    succeeded_spans = spans.filter(pc.invert(flagged(spans, layout.FLAG_FAILED)))
    normal_spans = succeeded_spans.filter(pc.invert(flagged(succeeded_spans, SPECIAL)))
    times = spread(normal_spans if normal_spans.num_rows else succeeded_spans)
    if times is None:
        return None
    is_traced = not normal_spans.num_rows and bool(pc.any(flagged(succeeded_spans, layout.FLAG_TRACED)).as_py())
    return StepTimes(
        name, int(pc.sum(succeeded_spans["count"]).as_py()), times, is_traced, curve(spans, CURVE_POINTS_MAX)
    )


def _top_ops(job: JobReader) -> TopOps:
    ranking = rank_ops(job)
    if ranking is None:
        return TopOps(0, {}, [], untraced_reason(job))
    return TopOps(ranking.profile.trace_count, dict(ranking.profile.kinds), ranking.ops, None)


def _advice(job: JobReader) -> list[AdviceItem]:
    names = [checker.name for checker in CHECKERS if checker.slug != _OPS_CHECKER]
    advice = advise(Selection((job,)), names)
    return [
        AdviceItem(checker.slug, checker.title, report.text, report.line, report.remedy)
        for job_advice in advice
        for checker, reports in job_advice.advice
        for report in reports
    ]
