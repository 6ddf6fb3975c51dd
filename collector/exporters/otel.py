"""The steps and phases of jobs as spans of OpenTelemetry, which its formats write.

A job is a trace: a root span for the job, below it the phases and steps as they enclose each other.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from ..errors import StoreError
from ..query.explanations import untraced_reason
from ..store.protocols import JobReader
from ..traces.job_trace import SPANS, TRACED_STEPS
from ..traces.model import Mark, Process, Slices, Track
from ..traces.trace import Trace
from .request import Request

Attributes = Mapping[str, str | int]
#: Kind of a span within one process, as in OpenTelemetry.
INTERNAL: Final = 1


class Event(NamedTuple):
    """An event or alert of the job (real ns)."""

    time_ns: int
    name: str
    attributes: Attributes


class Span(NamedTuple):
    """A span (real ns); ``parent``: id of the enclosing span, 0 for the job's own."""

    id: int
    parent: int
    name: str
    start_ns: int
    end_ns: int
    attributes: Attributes
    events: Sequence[Event] = ()


class Spans(NamedTuple):
    """Some spans of one job; ``resource`` describes it, ``trace_id`` has 16 bytes."""

    resource: Attributes
    trace_id: bytes
    spans: Sequence[Span]


def spans(request: Request) -> Iterator[Spans]:
    """Yield the spans of all jobs, in batches; those of the jobs themselves come last.

    Errors are those of `Trace`; StoreError ``no-data`` if no job has a step or phase.
    """
    jobs = request.selection.jobs
    writers: list[_Job] = []
    is_empty = True
    for job, job_trace in zip(jobs, Trace(request.selection, needs_traces=False).jobs, strict=True):
        writer = _Job(job_trace.process, job)
        writers.append(writer)
        for part in job_trace.parts(with_executions=False, with_curves=False):
            if isinstance(part, Track):
                writer.groups[part.number] = part.group
            elif isinstance(part, Mark):
                writer.events.append(Event(part.time_ns, part.name, {"text": part.text}))
            elif isinstance(part, Slices):
                is_empty = False
                yield from writer.slices(part)
    if is_empty:
        raise StoreError(untraced_reason(jobs[0]), slug="no-data")
    for writer in writers:
        yield from writer.end()


def _id(digest: bytes) -> int:
    return int.from_bytes(digest[-8:], "big") or 1


class _Job:
    """The spans of one job."""

    def __init__(self, process: Process, job: JobReader) -> None:
        self.groups: dict[int, str] = {}
        self.events: list[Event] = []
        digest = sha256(b"tfprof %016x" % job.info.uid).digest()
        self._trace_id = digest[:16]
        self._root = _id(digest)
        self._name = process.name
        resource: dict[str, str | int] = {
            "service.name": process.name,
            "service.instance.id": job.info.hex,
            "host.name": process.host,
            "process.pid": process.pid,
        }
        self._resource = {name: value for name, value in resource.items() if value}
        self._open: dict[int, list[int]] = {}  # track -> ids of the enclosing spans, outermost first
        self._has_spans = False
        self._start_ns, self._end_ns = 1 << 63, 0

    def slices(self, slices: Slices) -> Iterator[Spans]:
        """Yield the spans of steps and phases.

        The spans of steps include the traced ones. A job that was imported from files without such
        spans has its traced steps instead.
        """
        group = self.groups[slices.table["track"][0].as_py()]
        self._has_spans = self._has_spans or group == SPANS
        if group == SPANS or (group == TRACED_STEPS and not self._has_spans):
            yield self._batch([self._span(slices, *row) for row in slices.rows()])

    def end(self) -> Iterator[Spans]:
        """Yield the span of the job."""
        times_ns = [event.time_ns for event in self.events]
        start_ns, end_ns = min(self._start_ns, *times_ns, 1 << 63), max(self._end_ns, *times_ns, 0)
        if end_ns:
            yield self._batch([Span(self._root, 0, self._name, start_ns, end_ns, {}, self.events)])

    def _span(
        self, slices: Slices, track: int, depth: int, label: int, step: int, start_ns: int, duration_ns: int, _size: int
    ) -> Span:
        enclosing = self._open.setdefault(track, [])
        del enclosing[depth:]
        parent = enclosing[-1] if enclosing else self._root
        kind, ordinal, count = slices.steps[step]
        facts = (kind, slices.labels[label].op, ordinal, start_ns, duration_ns)
        # The id depends on the span alone, so that it is the same in each export.
        number = _id(sha256(b"%s %s" % (self._trace_id, repr(facts).encode("utf-8", "replace"))).digest())
        enclosing.append(number)
        end_ns = start_ns + duration_ns
        self._start_ns, self._end_ns = min(self._start_ns, start_ns), max(self._end_ns, end_ns)
        attributes: dict[str, str | int] = {"tfprof.step.kind": kind, "tfprof.step.number": ordinal}
        if count > 1:
            attributes["tfprof.step.count"] = count
        return Span(number, parent, kind, start_ns, end_ns, attributes)

    def _batch(self, spans: Sequence[Span]) -> Spans:
        return Spans(self._resource, self._trace_id, spans)
