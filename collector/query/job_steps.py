"""Reads the step times and the events of a job."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from ...formats import span_kinds
from ..errors import UsageError
from ..numbers import count, date_and_time
from ..store.columns import pc, row_tuples
from ..store.protocols import JobReader
from ..summaries.events import EventSummary, events
from ..summaries.jobs import counts_of, functions_of
from ..summaries.step_range import range_text, spans_within
from ..summaries.steps import Steps, spans_of_kinds
from ..summaries.steps import steps as summarize
from .explanations import missed_steps_note
from .run_names import run_names


@dataclass(frozen=True, slots=True)
class StepSelection:
    """Which steps of a job to read: by number, and those that began at a time (real ns) or later.

    ``listed``: how many of them to list one by one, None for all: the last ones, or the longest.
    """

    listed: int | None
    longest: bool = False
    steps: tuple[int, int] | None = None
    since_ns: int = 0

    @property
    def is_partial(self) -> bool:
        """Whether the selection leaves out steps of the job."""
        return self.steps is not None or self.since_ns > 0


@dataclass(frozen=True, slots=True)
class JobSteps:
    """The steps and the events of a job.

    ``counts``: number of selected spans by kind. Without a selection these are all spans of the
    job, including those without an entry. ``missed``: how many selected steps could not be traced,
    and why; None if there are none.
    """

    job: JobReader
    steps: Steps
    counts: Mapping[str, int]
    events: tuple[EventSummary, ...]
    missed: str | None
    selection: StepSelection


def job_steps(job: JobReader, selection: StepSelection) -> JobSteps:
    """Return the selected steps of ``job``.

    All parts are read from one snapshot of the job. UsageError ``no-such-step`` if the job has
    steps, but none that is selected.
    """
    return job.on_one_snapshot(lambda snapshot: _job_steps(snapshot, selection))


def _job_steps(job: JobReader, selection: StepSelection) -> JobSteps:
    spans, event_rows = job.table("spans"), job.table("events")
    counts = counts_of(job.info)
    if selection.is_partial:
        all_steps = spans_of_kinds(spans, span_kinds.steps())
        spans = spans_within(all_steps, selection.steps, selection.since_ns)
        if all_steps.num_rows and not spans.num_rows:
            raise no_such_timed_step(all_steps, selection.steps, selection.since_ns)
        event_rows = event_rows.filter(pc.greater_equal(event_rows["t_ns"], pa.scalar(selection.since_ns, pa.int64())))
        counts = _counts(spans)
    return JobSteps(
        job,
        summarize(spans, selection.listed, functions_of(job.info), run_names(job), longest=selection.longest),
        counts,
        events(event_rows),
        missed_steps_note(job),
        selection,
    )


def _counts(spans: pa.Table) -> dict[str, int]:
    """Return the number of steps of each kind in ``spans``."""
    numbers = Counter[str]()
    for kind, number in row_tuples(spans, "kind", "count"):
        numbers[span_kinds.name_of(kind)] += number
    return dict(numbers)


def no_such_timed_step(spans: pa.Table, steps: tuple[int, int] | None, since_ns: int) -> UsageError:
    """Return the error that no step in ``spans`` is one of ``steps`` since ``since_ns``."""
    what = f"no step {range_text(*steps)}" if steps else "no step"
    since = f" began since {date_and_time(since_ns)}" if since_ns else ""
    last = spans.sort_by("start_ns").slice(spans.num_rows - 1).to_pylist()[0]
    number = count(last["ordinal"] + last["count"] - 1)
    text = f"{what}{since}: the last one is {span_kinds.name_of(last['kind'])} {number}"
    return UsageError(f"{text}, of {date_and_time(last['start_ns'])}", slug="no-such-step")
