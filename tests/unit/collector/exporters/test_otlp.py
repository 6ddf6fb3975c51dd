"""Spans of OpenTelemetry, read with its own messages.

Tests collector/exporters/otel.py, collector/exporters/otlp_json.py.
"""

import time
from pathlib import Path
from typing import Any

import pytest
from fakes import ended_jobs, exported_slices, hostile_store, page_store
from fakes.command import Run
from fakes.made_store import START_NS, rows, span, trace, write_job
from fakes.many_executions import write_many_executions
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData
from tfprof.formats import layout

FILES = ("out.otlp", "out.otlp.gz", "out.otlp.jsonl", "out.otlp.jsonl.gz")
MS = 1_000_000


def read(path: Path) -> Any:
    """Return the content of a file as one TracesData."""
    data = exported_slices.content(path)
    traces = TracesData()
    if ".jsonl" in path.name:
        for line in data.splitlines():
            # In OpenTelemetry's JSON, ids are in hexadecimal, not in base64.
            traces.MergeFrom(json_format.Parse(line, TracesData()))
        return traces
    traces.ParseFromString(data)
    assert traces.SerializeToString() == data
    assert ExportTraceServiceRequest.FromString(data).SerializeToString() == data
    return traces


def spans(traces: Any) -> list[Any]:
    """Return all spans."""
    return [span for job in traces.resource_spans for scope in job.scope_spans for span in scope.spans]


def attributes(owner: Any) -> dict[str, Any]:
    """Return the attributes of a resource or span."""
    return {entry.key: getattr(entry.value, entry.value.WhichOneof("value")) for entry in owner.attributes}


@pytest.mark.parametrize("name", FILES)
def test_steps_and_phases_are_spans_below_the_job(name: str, run: Run, tmp_path: Path) -> None:
    ended_jobs.write(tmp_path / "store")
    assert run("export", "7f3a", "-o", tmp_path / name) == (0, "", "")
    traces = read(tmp_path / name)
    found = spans(traces)
    names = {span.span_id: span.name for span in found}
    assert len(names) == len(found) == 44
    tree = {(span.name, names.get(span.parent_span_id)) for span in found}
    assert tree == {
        ("train.py", None),
        ("fit", "train.py"),
        ("evaluate", "train.py"),
        ("epoch", "fit"),
        ("batch", "epoch"),
    }
    assert len({span.trace_id for span in found}) == 1
    assert {span.kind for span in found} == {Span.SPAN_KIND_INTERNAL}
    batches = [span for span in found if span.name == "batch"]
    assert [
        (span.start_time_unix_nano, span.end_time_unix_nano, attributes(span)["tfprof.step.number"]) for span in batches
    ] == [(START_NS + (5_000 + n * 400) * MS, START_NS + (5_020 + n * 400) * MS, n) for n in range(1, 41)]
    root = found[-1]
    assert [(event.name, event.time_unix_nano) for event in root.events] == [("gap", START_NS), ("stall", START_NS)]
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (START_NS, START_NS + 26_500 * MS)
    for job in traces.resource_spans:
        assert attributes(job.resource) == {
            "service.name": "train.py",
            "service.instance.id": "7f3a000000000000",
            "host.name": "node7",
            "process.pid": 4711,
        }


def test_no_step_is_within_sampled_steps_since_their_start_is_an_estimate(run: Run, tmp_path: Path) -> None:
    sampled = span(layout.RUN, 2, 10, 90, count=9, flags=layout.FLAG_SAMPLED)
    others = [span(layout.RUN, 1, 0, 10), span(layout.BATCH, 1, 20, 10)]
    write_job(tmp_path / "store", 1, {"spans": rows("spans", [*others, sampled])})
    assert run("export", "train.py", "-o", tmp_path / "a.otlp") == (0, "", "")
    found = spans(read(tmp_path / "a.otlp"))
    assert {each.parent_span_id for each in found[:-1]} == {found[-1].span_id}


def test_sampled_steps_start_after_the_row_before_however_slow_the_timed_one_is(run: Run, tmp_path: Path) -> None:
    """They start with the timed step at the latest."""
    slow, parallel = (
        span(layout.RUN, first, end - 900, 900, count=9, flags=layout.FLAG_SAMPLED)
        for first, end in ((2, 200), (11, 210))
    )
    write_job(tmp_path / "store", 1, {"spans": rows("spans", [slow, parallel, span(layout.RUN, 1, 20, 10)])})
    assert run("export", "train.py", "-o", tmp_path / "a.otlp") == (0, "", "")
    times = {
        (
            span.name,
            attributes(span).get("tfprof.step.count"),
            (span.start_time_unix_nano - START_NS) // MS,
            (span.end_time_unix_nano - START_NS) // MS,
        )
        for span in spans(read(tmp_path / "a.otlp"))
    }
    assert times == {
        ("train.py", None, 20, 210),
        ("run", None, 20, 30),
        ("run", 9, 30, 200),
        ("run", 9, 110, 210),
    }


def test_ids_have_the_length_of_the_protocol(run: Run, tmp_path: Path) -> None:
    ended_jobs.write(tmp_path / "store")
    assert run("export", "7f3a", "-o", tmp_path / "a.otlp") == (0, "", "")
    assert run("export", "7f3a", "-o", tmp_path / "a.otlp.jsonl") == (0, "", "")
    first = spans(read(tmp_path / "a.otlp"))[0]
    assert (len(first.trace_id), len(first.span_id), len(first.parent_span_id)) == (16, 8, 8)
    text = (tmp_path / "a.otlp.jsonl").read_text()
    assert f'"traceId":"{first.trace_id.hex()}","spanId":"{first.span_id.hex()}"' in text
    assert f'"startTimeUnixNano":"{first.start_time_unix_nano}"' in text


def test_the_id_of_a_span_is_the_same_in_each_export(run: Run, tmp_path: Path) -> None:
    page_store.write(tmp_path / "store")
    ids = []
    for name, words in (("all.otlp", ()), ("some.otlp", ("--steps", "2"))):
        assert run("export", "aa10", *words, "-o", tmp_path / name)[0] == 0
        ids.append(
            {span.span_id: span.start_time_unix_nano for span in spans(read(tmp_path / name)) if span.parent_span_id}
        )
    assert 0 < len(ids[1]) < len(ids[0])
    assert ids[1].items() <= ids[0].items()


@pytest.mark.parametrize(("seconds", "first"), [(300, 30), (600, 60)])
def test_all_that_ended_since_then_is_a_span(seconds: int, first: int, run: Run, tmp_path: Path) -> None:
    """The last step was traced after 500 seconds."""
    traces = [
        trace(number, step, 0, 0) | {"start_ns": START_NS + step * 10_000 * MS} for number, step in enumerate((1, 50))
    ]
    steps = [span(layout.RUN, number, number * 10_000, 5) for number in range(1, 100)]
    write_job(tmp_path / "store", 1, {"spans": rows("spans", steps), "traces": rows("traces", traces)})
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(START_NS // 10**9 + seconds))
    assert run("export", "train.py", "--since", since, "-o", tmp_path / "a.otlp") == (0, "", "")
    found = spans(read(tmp_path / "a.otlp"))
    assert [attributes(span)["tfprof.step.number"] for span in found[:-1]] == list(range(first, 100))


def test_each_job_is_a_trace_of_its_own(run: Run, tmp_path: Path) -> None:
    write_many_executions(tmp_path / "store", 1)
    write_many_executions(tmp_path / "store", 2, name="other.py")
    assert run("export", "train.py", "other.py", "-o", tmp_path / "a.otlp") == (0, "", "")
    traces = read(tmp_path / "a.otlp")
    by_job = {
        (attributes(job.resource)["service.name"], span.trace_id)
        for job in traces.resource_spans
        for scope in job.scope_spans
        for span in scope.spans
    }
    assert [name for name, _ in sorted(by_job)] == ["other.py", "train.py"]
    assert len({trace for _, trace in by_job}) == 2


@pytest.mark.parametrize("name", FILES)
def test_hostile_texts_leave_the_file_valid(name: str, run: Run, tmp_path: Path) -> None:
    hostile_store.write(tmp_path / "store")
    assert run("export", f"{hostile_store.JOB:x}", "-o", tmp_path / name) == (0, "", "")
    assert hostile_store.LONG in "".join(
        event.attributes[0].value.string_value for event in spans(read(tmp_path / name))[-1].events
    )


def test_a_job_without_steps_leaves_no_file(run: Run, tmp_path: Path) -> None:
    ended_jobs.write(tmp_path / "store")
    status, _, error = run("export", "other.py", "-o", tmp_path / "a.otlp")
    assert (status, error.split()[-1]) == (1, "[no-data]")
    assert not (tmp_path / "a.otlp").exists()
