"""Reads the step times, the events, the spans and the activities of a job."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from ...formats import layout, run_keys, span_kinds
from ..store.catalog import RUNNING
from ..store.columns import integers, pc, row_tuples
from ..store.protocols import JobReader
from ..store.schema import NODE, NONE_ID
from ..summaries.activities import ActivityNode, activity_tree
from ..summaries.events import EventSummary, events
from ..summaries.jobs import counts_of, current_info, functions_of
from ..summaries.spans import SpanNode, span_tree
from ..summaries.steps import RunName, Steps, rows_of_kinds, spans_since, spans_within
from ..summaries.steps import steps as summarize
from ..tfviews.nodes import interned_texts
from .explanations import missed_steps_note, untraced_reason
from .recorded_steps import no_such_timed_step

#: The op that returns a fetch: the node, its output, and the position of the fetch.
_RETURNED: Final = re.compile(r"_retval_(?P<node>.+)_(?P<output>\d+)_(?P<position>\d+)", re.DOTALL)
#: Maximum number of calls that get names. A graph that grows in a loop has a new call for each run.
_CALLS_MAX: Final = 64


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
    job, including those without an entry. ``note``: why no step was traced, or how many selected
    steps could not be traced, and why; None if there are none.
    """

    job: JobReader
    steps: Steps
    counts: Mapping[str, int]
    events: tuple[EventSummary, ...]
    note: str | None
    selection: StepSelection


def job_steps(job: JobReader, selection: StepSelection) -> JobSteps:
    """Return the selected steps of ``job``.

    All parts are read from one snapshot of the job. UsageError ``no-such-step`` if the job has
    steps, but none that is selected.
    """
    return job.on_one_snapshot(lambda snapshot: _job_steps(snapshot, selection))


def _job_steps(job: JobReader, selection: StepSelection) -> JobSteps:
    spans, event_rows = job.table("spans"), job.table("events")
    counts = counts_of(current_info(job.info, spans))
    if selection.is_partial:
        all_steps = rows_of_kinds(spans, span_kinds.steps())
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
        missed_steps_note(job) if job.table("traces", ("trace",)).num_rows else untraced_reason(job),
        selection,
    )


def _counts(spans: pa.Table) -> dict[str, int]:
    """Return the number of steps of each kind in ``spans``."""
    numbers = Counter[str]()
    for kind, number in row_tuples(spans, "kind", "count"):
        numbers[span_kinds.name_of(kind)] += number
    return dict(numbers)


def run_names(job: JobReader) -> dict[int, RunName]:
    """Return what the traced session runs of ``job`` fetch, by key; none of an imported job."""
    first_traces: dict[int, int] = {}
    for kind, key, trace in row_tuples(job.table("traces", ("trace", "kind", "key")), "kind", "key", "trace"):
        if kind in layout.RUN_KINDS and key:
            first_traces.setdefault(key, trace)
    if not first_traces:
        return {}
    names = interned_texts(job.table("names"), NODE)
    runs = {key: _run_name(job, key, trace, names) for key, trace in list(first_traces.items())[:_CALLS_MAX]}
    return {key: run for key, run in runs.items() if run}


def _run_name(job: JobReader, key: int, trace: int, names: Mapping[int, str]) -> RunName | None:
    """Return what the run ``trace`` fetches, None if it is unknown."""
    rollup = job.rollup((trace,))
    ran = rollup.filter(pc.not_equal(rollup["device"], NONE_ID))
    nodes = {names[number] for number in integers(ran["node"]) if number in names}
    returned = [match for node in nodes if (match := _RETURNED.fullmatch(node))]
    returned.sort(key=lambda match: int(match["position"]))
    _, fetches, targets = run_keys.call_counts(key)
    if min(len(returned), run_keys.COUNT_MAX) != fetches:
        return None
    tensors = [f"{match['node']}:{match['output']}" for match in returned]
    target = _target(key, tensors, nodes) if targets == 1 else ""
    fetched = tuple(name.removesuffix(":0") for name in tensors)
    return RunName(fetched, target) if fetched or target else None


def _target(key: int, fetches: Sequence[str], nodes: Collection[str]) -> str:
    """Return the target of a run: the node whose hash ``key`` has; ``""`` if there is none."""
    feeds, _, _ = run_keys.call_counts(key)
    keys = {node: run_keys.with_feeds(run_keys.signature_key(fetches, [node]), feeds) for node in sorted(nodes)}
    return next((node for node, node_key in keys.items() if node_key == key), "")


@dataclass(frozen=True, slots=True)
class JobSpans:
    """The spans and the activities of a job as the lines of two trees, parents first.

    ``since_ns``: only those that ended then or later (real time), 0 for all. ``stored``: number of
    all stored spans and activities.
    """

    job: JobReader
    tree: tuple[SpanNode, ...]
    activities: tuple[ActivityNode, ...]
    since_ns: int
    stored: int


def job_spans(job: JobReader, since_ns: int = 0) -> JobSpans:
    """Return the spans and activities of ``job``; ``since_ns``: see JobSpans."""
    all_spans, names = job.table("spans"), functions_of(job.info)
    spans = spans_since(all_spans, since_ns)
    tree = span_tree(spans, names, run_names(job), live=job.info.state == RUNNING)
    return JobSpans(job, tuple(tree), tuple(activity_tree(spans, names)), since_ns, all_spans.num_rows)
