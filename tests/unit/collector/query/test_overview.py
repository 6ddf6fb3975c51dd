"""The parts of a job's summary agree with each other while the job runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.made_store import HOST, IDENTITY, START_NS, rows, span, trace
from tfprof.collector.query import overview as module
from tfprof.collector.query.job_steps import StepSelection, job_steps
from tfprof.collector.query.kind_selection import steps_run
from tfprof.collector.query.overview import overview
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalJobWriter, LocalStoreWriter
from tfprof.formats import layout

IDS = (0xABCD000000000000, 0xABCE000000000000)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[LocalJobWriter]:
    """A running job of ten batches.

    Its counters were stored after five batches. They count three epochs.
    """
    writer = LocalStoreWriter(tmp_path, HOST)
    writer.job(IDS[1]).set_identity(IDENTITY)
    job = writer.job(IDS[0])
    job.set_identity({**IDENTITY, "created_real_ns": START_NS})
    job.set_counters({"counts": {"batch": 5, "epoch": 3, "fit": 1}, "times": {"batch": 5}, "traced": 0, "step_ns": 5})
    job.sync_if_due(10.0**9)
    batches = [span(layout.BATCH, step, 10 * step, 9) for step in range(1, 11)]
    job.append({"spans": rows("spans", [*batches, span(layout.EPOCH, 2, 0, 90)])})
    job.append({"traces": rows("traces", [trace(number, 3 + number, 1, START_NS) for number in range(2)])})
    yield job
    writer.close()


def test_counts_include_the_stored_steps_of_a_running_job(tmp_path: Path, job: LocalJobWriter) -> None:
    summary = overview(LocalStore(tmp_path, HOST).job("abcd"))
    assert (summary.row.id, summary.row.steps, summary.row.step_kind, summary.row.epochs) == ("abcd", 10, "batch", 3)
    assert (summary.row.traced, summary.row.step_ns, summary.steps[0].count) == (2, 9e6, 10)


def test_all_commands_count_the_stored_steps_of_a_running_job(tmp_path: Path, job: LocalJobWriter) -> None:
    reader = LocalStore(tmp_path, HOST).job("abcd")
    assert job_steps(reader, StepSelection(None)).counts["batch"] == 10
    assert steps_run([reader], (layout.BATCH,)) == (10, False)


def test_all_parts_are_of_one_moment(tmp_path: Path, job: LocalJobWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    span_tree = module.span_tree

    def append_and_build_tree(*arguments: Any, **options: Any) -> Any:
        job.append({"spans": rows("spans", [span(layout.BATCH, 11, 110, 9)])})
        job.append({"traces": rows("traces", [trace(2, 11, 1, START_NS)])})
        job.append({"events": rows("events", [{"t_ns": 1, "slug": "gap", "text": "late", "count": 1}])})
        job.seal()
        return span_tree(*arguments, **options)

    monkeypatch.setattr(module, "span_tree", append_and_build_tree)
    summary = overview(LocalStore(tmp_path, HOST).job("abcd"))
    assert (summary.row.steps, summary.row.traced, summary.steps[0].count, summary.warnings) == (10, 2, 10, [])
    monkeypatch.undo()
    summary = overview(LocalStore(tmp_path, HOST).job("abcd"))
    assert (summary.row.steps, summary.row.traced, summary.steps[0].count) == (11, 3, 11)
    assert [warning.slug for warning in summary.warnings] == ["gap"]


@pytest.mark.parametrize(("flags", "steps", "first"), [(0, 1, 111), (layout.FLAG_SAMPLED, 10, 1020)])
def test_steps_since_a_slowdown_are_a_row_beside_those_of_the_whole_life(
    tmp_path: Path, job: LocalJobWriter, flags: int, steps: int, first: int
) -> None:
    times_ms = [2.0] * 100 + [16.0] * 40
    entries = [
        span(layout.BATCH, 11 + steps * at, 200 * at, steps * ms, count=steps, flags=flags)
        for at, ms in enumerate(times_ms)
    ]
    job.append({"spans": rows("spans", entries)})
    whole_life, since = overview(LocalStore(tmp_path, HOST).job("abcd")).steps[:2]
    assert (whole_life.since, whole_life.count, whole_life.spread.p50_ns) == (0, 10 + 140 * steps, 2e6)
    assert (since.kind, since.since, since.count, since.spread.p50_ns) == ("batch", first, 40 * steps, 16e6)
