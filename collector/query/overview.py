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
from ..summaries.kinds import NUMBERS, kind_name, span_kind, step_kind_of
from ..summaries.pace import curve
from ..summaries.spans import span_tree
from ..summaries.spread import Spread, spread
from ..summaries.stages import Stage, stages
from ..summaries.steps import UNUSUAL, flagged, spans_of_kinds
from ..summaries.top import TopOp
from .advising import advise
from .alerts import stored_alerts
from .engine import Selection
from .explanations import cost_note, missed, untraced
from .ranked import ranked
from .selection import ids_of
from .surroundings import host_samples

#: Maximum number of points in a curve over the whole job.
CURVE: Final = 32
#: Maximum number of functions with separate step times.
_FUNCTIONS: Final = 16
#: Slug of the checker that only repeats the table of ops.
_REPEATED: Final = "expensive"


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The timed steps of one kind: their number and spread, and a curve of their times.

    The spread covers the usual steps, which are neither traced nor setup steps. If there are none,
    it covers traced and setup steps, and ``traced`` is true. Failed steps never count. ``curve``
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


class Advised(NamedTuple):
    """One piece of advice."""

    slug: str
    title: str
    text: str
    line: str
    todo: str


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
    advice: list[Advised]


def overview(store: StoreReader, selector: str, *, advised: bool = True) -> Overview:
    """Return the summary of the job ``selector``, with advice if ``advised``.

    All parts are read from one snapshot of the job. NoSuchJobError unless one job matches.
    """
    chosen = store.job(selector)
    short = ids_of([chosen])[chosen.info.hex]
    return chosen.on_one_snapshot(lambda job: _overview(job, short, advised))


def _overview(job: JobReader, short: str, advised: bool) -> Overview:
    now_ns = time.time_ns()
    spans = job.table("spans")
    row = job_row(_up_to_date(job, spans), short, now_ns)
    samples = job.table("samples")
    around = host_samples(job, samples)
    cores = cpus(around)
    tree = span_tree(spans, functions_of(job.info), live=job.info.state == catalog.RUNNING)
    return Overview(
        job=job,
        row=row,
        tags=job.tags(),
        stages=stages(row, tree, spans, now_ns),
        steps=step_times_of(row, spans, functions_of(job.info)),
        ops=_ops(job),
        host=row.host,
        cpus=cores,
        samples=samples.num_rows,
        job_series=job_series(samples, cores),
        host_series=host_series(around),
        alerts=[f"{one.text} [{one.alert.slug}]" for one in stored_alerts(job)],
        warnings=[one for one in events(job.table("events")) if not one.is_harmless],
        notes=[text for text in (missed(job), cost_note(job, row)) if text],
        advice=_advice(job) if advised else [],
    )


def _up_to_date(job: JobReader, spans: pa.Table) -> catalog.JobInfo:
    """Return the record of a job with counters that include its stored steps.

    The record of a running job is up to five seconds old.
    """
    values = job.info.counters
    counts, times = (
        {**found} if isinstance(found := values.get(name), Mapping) else {} for name in ("counts", "times")
    )
    last = pc.add(spans["ordinal"], pc.subtract(spans["count"], pa.scalar(1, pa.uint32())))
    ran = pa.table({"kind": spans["kind"], "last": last, "time": spans["total_ns"]}).group_by("kind")
    for one in ran.aggregate([("last", "max"), ("time", "sum")]).to_pylist():
        kind = kind_name(one["kind"])
        counts[kind] = max(integer_of(counts, kind), one["last_max"])
        times[kind] = max(integer_of(times, kind), one["time_sum"])
    traced = max(integer_of(values, "traced"), job.table("traces", ("trace",)).num_rows)
    return replace(job.info, counters={**values, "counts": counts, "times": times, "traced": traced})


def step_times_of(row: JobRow, spans: pa.Table, functions: Mapping[int, str]) -> list[StepTimes]:
    """Return the timed kinds of steps: the job's main kind first, then by total time.

    Each function is a separate kind; ``functions`` are their names by key.
    """
    found = (
        (kind, _of_kind(kind_name(kind, functions), part))
        for span in NUMBERS.values()
        for kind, part in _kinds(span, spans_of_kinds(spans, (span,)))
    )
    main = NUMBERS.get(row.step_kind)
    timed = [(span_kind(kind) != main, -one.spread.total_ns, one) for kind, one in found if one is not None]
    return [one for _, _, one in sorted(timed, key=lambda each: each[:2])]


def _kinds(span: int, spans: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Yield each kind of step in ``spans``, which are of one span kind, with its spans.

    Each function is a kind; only the functions with the most calls are yielded.
    """
    if span != layout.FUNCTION:
        yield span, spans
        return
    for key, _ in sorted(occurrences(spans["key"]), key=lambda each: -each[1])[:_FUNCTIONS]:
        yield step_kind_of(span, key), spans.filter(pc.equal(spans["key"], pa.scalar(key, pa.uint32())))


def _of_kind(name: str, spans: pa.Table) -> StepTimes | None:
    whole = spans.filter(pc.invert(flagged(spans, layout.FLAG_FAILED)))
    usual = whole.filter(pc.invert(flagged(whole, UNUSUAL)))
    times = spread(usual if usual.num_rows else whole)
    if times is None:
        return None
    is_traced = not usual.num_rows and bool(pc.any(flagged(whole, layout.FLAG_TRACED)).as_py())
    return StepTimes(name, int(pc.sum(whole["count"]).as_py()), times, is_traced, curve(spans, CURVE))


def _ops(job: JobReader) -> TopOps:
    found = ranked(job)
    if found is None:
        return TopOps(0, {}, [], untraced(job))
    return TopOps(found.profile.traces, dict(found.profile.kinds), found.ops, None)


def _advice(job: JobReader) -> list[Advised]:
    names = [checker.name for checker in CHECKERS if checker.slug != _REPEATED]
    found = advise(Selection((job,)), names)
    return [
        Advised(checker.slug, checker.title, report.text, report.line, report.todo)
        for one in found
        for checker, reports in one.advice
        for report in reports
    ]
