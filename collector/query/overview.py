"""Summary of one job: phases, step times, top ops, host use, warnings and advice."""

import time
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import pyarrow as pa

from ..advice.evidence import Evidence
from ..advice.table import CHECKERS
from ..advice.verdict import findings
from ..store import catalog
from ..store.columns import pc
from ..store.protocols import JobReader
from ..summaries.events import EventSummary, events
from ..summaries.jobs import JobRow, current_info, functions_of, job_row
from ..summaries.kinds import KINDS_BY_NAME
from ..summaries.parts import Breakdown
from ..summaries.spans import Stage, span_tree, stages
from ..summaries.step_times import StepTimes, median_step, step_times_of, times_of_steps
from ..summaries.steps import rows_of_kinds
from ..summaries.top import TopOp, top_ops
from .advising import JobAdvice, advise
from .alerts import stored_alerts
from .breakdown import main_breakdown
from .explanations import (
    cost_note,
    has_programs,
    missed_steps_note,
    own_traces_note,
    programs_note,
    untested_versions,
    untraced_reason,
)
from .job_selection import Selection, ids_of
from .job_usage import JobUsage, job_usage
from .listing import all_tags
from .node_times import rank_ops

#: Slug of the checker that only repeats the table of ops.
_OPS_CHECKER: Final = "expensive"


class TopOps(NamedTuple):
    """The op types of ``steps`` traced steps, the longest time first.

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
    """Summary of one job; durations are in ns, points in time in real ns.

    ``median``: that of ``steps`` whose median stands for the job, None if all its steps are traced.
    ``is_compiled``: XLA compiled some of the ops that ran.
    """

    job: JobReader
    row: JobRow
    tags: tuple[str, ...]
    command: tuple[str, ...]
    stages: list[Stage]
    steps: list[StepTimes]
    median: StepTimes | None
    parts: Breakdown | None
    ops: TopOps
    is_compiled: bool
    usage: JobUsage
    alerts: list[str]
    warnings: list[EventSummary]
    notes: list[str]
    advice: list[AdviceItem]


def overview(job: JobReader, *, with_advice: bool = True) -> Overview:
    """Return the summary of ``job``, with advice if ``with_advice``.

    All parts are read from one snapshot of the job.
    """
    short_id = ids_of([job])[job.info.hex]
    return job.on_one_snapshot(lambda snapshot: _overview(snapshot, short_id, with_advice))


def _overview(job: JobReader, short_id: str, with_advice: bool) -> Overview:
    now_ns = time.time_ns()
    spans = job.table("spans")
    info = current_info(job.info, spans, job.table("traces", ("trace",)).num_rows)
    row = job_row(info, short_id, now_ns)
    usage = job_usage(job)
    advice = _advice(job) if with_advice else None
    tree = span_tree(spans, functions_of(job.info), live=job.info.state == catalog.RUNNING)
    ops = _ops_of(job, advice.evidence) if advice else _top_ops(job)
    steps = _all_step_times(job, row, spans, advice.evidence if advice else None)
    is_compiled = has_programs(job, (op.op for op in ops.ops))
    return Overview(
        job=job,
        row=row,
        tags=all_tags(job),
        command=_command(job),
        stages=stages(row, tree, spans, now_ns),
        steps=steps,
        median=median_step(row, steps, ops.kinds),
        parts=advice.evidence.breakdown if advice else main_breakdown(job, spans),
        ops=ops,
        is_compiled=is_compiled,
        usage=usage,
        alerts=[f"{job_alert.text} [{job_alert.alert.slug}]" for job_alert in stored_alerts(job)],
        warnings=sorted(
            (event for event in events(job.table("events")) if not event.is_harmless),
            key=lambda event: not event.is_incompleteness,
        ),
        notes=[
            text
            for text in (
                *untested_versions(job),
                missed_steps_note(job),
                own_traces_note(job),
                cost_note(job, row),
                usage.damage,
                programs_note(job) if is_compiled else None,
            )
            if text
        ],
        advice=_items(advice) if advice else [],
    )


def _command(job: JobReader) -> tuple[str, ...]:
    words = job.info.identity.get("command")
    return tuple(map(str, words)) if isinstance(words, list) else ()


def _all_step_times(job: JobReader, row: JobRow, spans: pa.Table, evidence: Evidence | None) -> list[StepTimes]:
    """Return the step times of each kind.

    With ``evidence``, those of the main kind since it became slower, if it did, are the second.
    """
    all_times = step_times_of(row, spans, functions_of(job.info))
    if evidence is None or evidence.shift is None:
        return all_times
    kind, shift = evidence.step_kind, evidence.shift
    is_slower = pc.and_(
        pc.greater(pc.add(spans["ordinal"], spans["count"]), pa.scalar(shift.step, pa.uint64())),
        pc.equal(spans["key"], pa.scalar(shift.key, pa.uint32())),
    )
    times = times_of_steps(all_times[0].kind, rows_of_kinds(spans.filter(is_slower), (KINDS_BY_NAME[kind],)))
    return all_times if times is None else [all_times[0], replace(times, since=shift.step), *all_times[1:]]


def _top_ops(job: JobReader) -> TopOps:
    ranking = rank_ops(job)
    if ranking is None:
        return TopOps(0, {}, [], untraced_reason(job))
    return TopOps(ranking.profile.trace_count, dict(ranking.profile.kinds), ranking.ops, None)


def _ops_of(job: JobReader, evidence: Evidence) -> TopOps:
    """Return the same as `_top_ops`, computed from evidence that has not averaged its nodes."""
    if not evidence.traced_kinds:
        return TopOps(0, {}, [], untraced_reason(job))
    steps = evidence.traced_steps
    return TopOps(steps, dict(evidence.traced_kinds), top_ops(evidence.nodes, evidence.times, steps), None)


def _advice(job: JobReader) -> JobAdvice:
    names = [checker.name for checker in CHECKERS if checker.slug != _OPS_CHECKER]
    return advise(Selection((job,)), names)[0]


def _items(advice: JobAdvice) -> list[AdviceItem]:
    return [
        AdviceItem(checker.slug, checker.title, report.text, report.line, report.remedy)
        for checker, report in findings(advice.advice)
    ]
