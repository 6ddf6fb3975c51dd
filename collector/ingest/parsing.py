"""Converts what a job sends into rows of its tables; pure functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import layout
from ..alerts.alert import Alert
from ..decoders.columns import from_rows, saturated
from ..decoders.decode import DecodedStep
from ..decoders.thread_lines import caller_of
from ..errors import DecodeError, FormatError
from ..records import Record, Span
from ..store import schema

UINT64_MAX: Final = (1 << 64) - 1
_UINT32_MAX: Final = (1 << 32) - 1
#: Maximum characters of an event's text.
TEXT_MAX: Final = 2_000
_SAMPLE_COLUMNS: Final = {
    name: tuple(schema.JOB_TABLES[name].names) for name in ("samples", "host_samples", "thread_samples")
}


class Event(NamedTuple):
    """An event of a job that occurred ``times`` times; docs/errors.md explains `slug`."""

    t_ns: int
    slug: str
    text: str
    times: int = 1


class TracedStep(NamedTuple):
    """One traced step: kind, ordinal, and times (real time, ns)."""

    kind: int
    ordinal: int
    key: int
    thread: int
    start_ns: int
    duration_ns: int


class Trace(NamedTuple):
    """One row of `traces`, in the order of its columns."""

    trace: int
    source: int
    kind: int
    step: int
    key: int
    thread: int
    start_ns: int
    duration_ns: int
    base_ns: int
    rows: int
    raw_bytes: int
    accelerator: int


def trace_rows(traces: Sequence[Trace]) -> pa.RecordBatch:
    """Return ``traces`` as rows of TRACES."""
    return from_rows(traces, "traces")


def step_of(record: Record) -> TracedStep:
    """Return the traced step of ``record``."""
    times = saturated(record.start_real_ns), saturated(record.duration_ns)
    return TracedStep(record.flags, record.step, record.key, record.thread, *times)


def profiled_step(record: Record) -> tuple[TracedStep, int, int, memoryview]:
    """Return step, session start, caller and XSpace of an XSPACE record.

    The start is in real time (ns). The caller identifies the step's thread within the XSpace
    (thread_lines.py). DecodeError if the record is truncated.
    """
    head = layout.XSPACE_HEAD
    if len(record.body) < head.size:
        raise DecodeError(f"{len(record.body)} bytes are too few for a profiler session")
    start_ns, _, thread = head.unpack_from(record.body)
    return step_of(record), saturated(start_ns), caller_of(thread), record.body[head.size :]


def trace_of(source: int, step: TracedStep, trace: int, decoded: DecodedStep, raw_bytes: int) -> Trace:
    """Return the row of a traced step; ``source``: its kind of record, RUN_METADATA or XSPACE."""
    base_ns = decoded.base_ns or (step.start_ns if source == layout.XSPACE else 0)
    return Trace(trace, source, *step, base_ns, decoded.rows, raw_bytes, decoded.accelerator)


def graph_number(record: Record) -> int:
    """Return the graph number of ``record``; DecodeError if it is out of range."""
    if record.step > _UINT32_MAX:
        raise DecodeError(f"graph number {record.step} is out of range")
    return record.step


def event_rows(events: Sequence[Event]) -> pa.RecordBatch:
    """Return ``events`` as rows of EVENTS."""
    return from_rows(events, "events")


def alert_rows(alerts: Sequence[Alert]) -> pa.RecordBatch:
    """Return ``alerts`` as rows of ALERTS; numbers that come from a job are saturated."""
    return from_rows([_storable(alert) for alert in alerts], "alerts")


def _storable(alert: Alert) -> Alert:
    return alert._replace(
        since_ns=saturated(alert.since_ns),
        step=max(0, min(UINT64_MAX, alert.step)),
        before=float(alert.before),
        now=float(alert.now),
    )


def event_of(values: Mapping[str, Any], now_ns: int) -> Event:
    """Return the event in a JSON document of the agent or the shim."""
    return Event(
        integer(values, "t_ns", now_ns),
        _text(values, "slug"),
        _text(values, "text"),
        integer(values, "count", 1),
    )


def _text(values: Mapping[str, Any], name: str) -> str:
    """Return the text ``name``, truncated to TEXT_MAX characters.

    Lone surrogates, which UTF-8 cannot encode, are replaced.
    """
    return str(values.get(name, ""))[:TEXT_MAX].encode("utf-8", "replace").decode()


def integer(values: Mapping[str, Any], name: str, default: int) -> int:
    """Return the integer ``name``, or ``default`` if it is absent.

    It is saturated to a signed 64-bit integer. FormatError if it is not an integer.
    """
    value = values.get(name, default)
    if type(value) is not int:  # JSON's true is an int, too
        raise FormatError(f"{name} is not an integer")
    return saturated(value)


def span_rows(spans: Sequence[Span], offset: int) -> pa.RecordBatch:
    """Return ``spans`` as rows of SPANS; ``offset`` converts monotonic times to real times (ns)."""
    rows = [
        (
            span.kind,
            span.flags,
            span.ordinal,
            max(1, span.steps),  # 0 is invalid, and readers divide by it
            saturated(span.start_mono_ns + offset),
            saturated(span.total_ns),
            saturated(span.min_ns),
            saturated(span.max_ns),
            span.key,
            span.thread,
            span.parent,
        )
        for span in spans
    ]
    return from_rows(rows, "spans")


def sample_row(values: Mapping[str, Any], t_ns: int, table: str) -> pa.RecordBatch:
    """Return one sample as a row of ``table``.

    Absent numbers become 0. FormatError if a value does not fit its column.
    """
    return _sample_rows(
        lambda: [tuple(t_ns if name == "t_ns" else values.get(name) or 0 for name in _SAMPLE_COLUMNS[table])], table
    )


def busy_thread_rows(threads: Any, t_ns: int) -> pa.RecordBatch:
    """Return the pairs ``threads`` as rows of BUSY_THREADS; FormatError if they do not fit."""
    return _sample_rows(lambda: [(t_ns, thread, cpu_s) for thread, cpu_s in threads], "busy_threads")


def _sample_rows(rows: Callable[[], list[tuple[Any, ...]]], table: str) -> pa.RecordBatch:
    try:
        return from_rows(rows(), table)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise FormatError(f"a sample does not fit its table: {error}") from None
