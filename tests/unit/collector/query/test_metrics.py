"""The figures for monitoring: they grow with the rows, never shrink, and are bounded."""

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.made_store import IDENTITY, MS, SECOND, START_NS, raise_error, rows, span, trace
from tfprof.collector.errors import StoreError
from tfprof.collector.query import metrics
from tfprof.collector.query.metrics import JobMetrics, MetricsReader, StoreMetrics
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.collector.summaries.job_totals import BOUNDS_NS, KINDS_MAX, Histogram
from tfprof.formats import layout

HOST = socket.gethostname()
NOW = START_NS + 300 * SECOND
HOUR = 3600 * SECOND
JOB = 0xA << 60


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LocalStoreWriter]:
    store_writer = LocalStoreWriter(tmp_path / "store", HOST)
    yield store_writer
    store_writer.close()


@pytest.fixture
def reader(writer: LocalStoreWriter) -> MetricsReader:
    return MetricsReader(str(writer.path), HOUR)


def start(writer: LocalStoreWriter, uid: int = JOB, **identity: Any) -> Any:
    job = writer.job(uid)
    job.set_identity({**IDENTITY, "host": HOST, **identity})
    return job


def steps(count: int, ms: float = 20, kind: int = layout.BATCH, **other: int) -> dict[str, Any]:
    return {"spans": rows("spans", [span(kind, n, n * 100, ms, **other) for n in range(1, count + 1)])}


def only(found: StoreMetrics) -> JobMetrics:
    (job,) = found.jobs
    return job


def bucket(ms: float) -> int:
    """Return the bucket of a time: the number of bounds below it."""
    return sum(bound < ms * MS for bound in BOUNDS_NS)


def histogram(*counts: tuple[int, int], sum_ns: float) -> Histogram:
    """Return a histogram; ``counts``: bucket and number of steps."""
    return Histogram(tuple(dict(counts).get(number, 0) for number in range(len(BOUNDS_NS) + 1)), sum_ns)


def test_the_steps_of_new_rows_are_added_once(writer: LocalStoreWriter, reader: MetricsReader) -> None:
    job = start(writer)
    at_20_ms, at_3_s = bucket(20), bucket(3000)
    for number in range(1, 4):
        job.append(steps(5))
        for _ in range(2):
            found = only(reader.update(NOW))
            assert found.steps == {"batch": 5 * number}
            assert found.times == {"batch": histogram((at_20_ms, 5 * number), sum_ns=100 * number * MS)}
    job.append(steps(1, 3000))
    job.close("exited", {"t_ns": NOW, "status": 0})
    ended = only(reader.update(NOW))
    assert ended.times["batch"] == histogram((at_20_ms, 15), (at_3_s, 1), sum_ns=3300 * MS)
    assert (ended.row.phase, ended.memory_bytes) == ("ended", None)
    assert only(MetricsReader(str(writer.path), HOUR).update(NOW)).times == ended.times


def test_a_bound_belongs_to_its_bucket(writer: LocalStoreWriter, reader: MetricsReader) -> None:
    job = start(writer)
    for ms in (0, 0.1, 0.100001, 25.6, 25.600001, 200_000):
        job.append(steps(1, ms))
    counts = only(reader.update(NOW)).times["batch"].counts
    assert BOUNDS_NS[8] == 25.6 * MS
    assert {number: count for number, count in enumerate(counts) if count} == {
        0: 2,
        1: 1,
        8: 1,
        9: 1,
        len(BOUNDS_NS): 1,
    }


def test_traced_failed_and_setup_steps_have_no_times(writer: LocalStoreWriter, reader: MetricsReader) -> None:
    job = start(writer)
    for flag in (0, layout.FLAG_TRACED, layout.FLAG_SETUP, layout.FLAG_FAILED):
        job.append(steps(2, flags=flag))
    job.append({"spans": rows("spans", [span(layout.BATCH, 9, 900, 50, count=5)])})
    found = only(reader.update(NOW))
    assert found.steps == {"batch": 11}
    assert found.times["batch"] == histogram((bucket(20), 2), (bucket(10), 5), sum_ns=90 * MS)


def test_counters_of_the_job_file_never_shrink(writer: LocalStoreWriter, reader: MetricsReader) -> None:
    job = start(writer)

    def found(now_s: float, **counters: Any) -> JobMetrics:
        job.set_counters(counters)
        writer.tick(now_s, raise_error)
        return only(reader.update(NOW))

    first = found(100, counts={"batch": 40}, failed={"batch": 1}, traced=3, dropped_spans=2)
    assert (first.steps, first.failed, first.traced) == ({"batch": 39}, {"batch": 1}, 3)
    assert first.lost == {"dropped_records": 0, "dropped_spans": 2, "never_stored": 0}
    later = found(200, counts={"batch": 40}, failed={"batch": 2}, traced=2, dropped_spans=1)
    assert (later.steps, later.failed, later.traced) == ({"batch": 39}, {"batch": 2}, 3)
    assert later.lost == first.lost


def test_a_job_that_runs_again_is_not_counted_twice(writer: LocalStoreWriter, reader: MetricsReader) -> None:
    job = start(writer)
    job.append(steps(5))
    assert only(reader.update(NOW)).steps == {"batch": 5}
    job.close("detached", {"t_ns": NOW})
    assert only(reader.update(NOW)).steps == {"batch": 5}
    start(writer).append(steps(2))
    again = only(reader.update(NOW + 20 * SECOND))
    assert again.row.phase == "running"
    assert sum(again.times["batch"].counts) == 7


def test_alerts_are_counted_and_begin_at_zero(writer: LocalStoreWriter, reader: MetricsReader) -> None:
    job = start(writer)
    job.append(steps(1))
    assert set(only(reader.update(NOW)).alerts.values()) == {0}
    job.append({"alerts": rows("alerts", [{"found_ns": NOW, "slug": slug} for slug in ("spike", "spike", "forged")])})
    alerts = only(reader.update(NOW)).alerts
    assert alerts == {"slower": 0, "pauses": 0, "spike": 2, "stall": 0, "memory-growth": 0, "losses": 0}


def test_jobs_by_state_and_what_is_left_out(
    writer: LocalStoreWriter, reader: MetricsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "JOBS_MAX", 2)
    for number in range(4):
        start(writer, JOB + number).append(steps(1))
    writer.job(JOB + 1).close("killed", {"t_ns": NOW - 2 * HOUR})
    writer.job(JOB + 2).close("exited", {"t_ns": NOW - HOUR // 2})
    start(writer, JOB + 9)
    (start(writer, JOB + 10).folder / "job.json").write_text("{")
    found = reader.update(NOW)
    assert {state: count for state, count in found.states.items() if count} == {
        "starting": 1,
        "running": 2,
        "exited": 1,
        "killed": 1,
        "damaged": 1,
    }
    assert found.left_out == {"ended_jobs": 1, "further_jobs": 2, "parts": 0, "steps": 0}
    assert [job.row.phase for job in found.jobs] == ["running", "running"]


def test_the_kinds_of_a_job_are_bounded(writer: LocalStoreWriter, reader: MetricsReader) -> None:
    job = start(writer, functions={"1": "same name", "2": "train", "3": "train"})
    for key in range(1, 40):
        job.append(steps(1, kind=layout.FUNCTION, key=key))
    found = reader.update(NOW)
    times = only(found).times
    assert (len(times), found.left_out["steps"]) == (KINDS_MAX, 39 - KINDS_MAX)
    assert {"function:#1", "function:train", "function:#3"} <= times.keys()
    assert only(found).steps == {"function": 39}


def test_an_ended_job_that_cannot_be_read_is_read_again(
    writer: LocalStoreWriter, reader: MetricsReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = start(writer)
    job.set_counters({"traced": 1})
    job.append({**steps(5), "traces": rows("traces", [trace(0, 3, 0, 0) | {"kind": layout.BATCH}])})
    job.close("exited", {"t_ns": NOW, "status": 0})

    def fail(*_: Any) -> None:
        raise StoreError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(reader, "_reader", fail)
        first = only(reader.update(NOW))
        assert (first.steps, first.parts) == ({}, None)
    later = only(reader.update(NOW))
    assert later.steps == {"batch": 5}
    assert later.parts is not None


def test_a_removed_job_is_forgotten(writer: LocalStoreWriter, reader: MetricsReader) -> None:
    job = start(writer)
    job.append(steps(5))
    assert reader.update(NOW).jobs
    writer.forget(job)
    shutil.rmtree(job.folder)
    assert reader.update(NOW).jobs == ()
    assert not reader._totals


def test_a_store_may_be_created_later(tmp_path: Path) -> None:
    reader = MetricsReader(str(tmp_path / "store"), HOUR)
    assert reader.update(NOW).jobs == ()
    writer = LocalStoreWriter(tmp_path / "store", HOST)
    try:
        start(writer).append(steps(5))
        assert only(reader.update(NOW)).steps == {"batch": 5}
    finally:
        writer.close()
