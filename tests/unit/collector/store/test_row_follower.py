"""New rows of a job: each row is returned once, whatever the collector does meanwhile."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from fakes.made_store import HOST, IDENTITY, rows, span
from tfprof.collector.errors import NoSuchJobError
from tfprof.collector.store import catalog
from tfprof.collector.store.row_follower import RowFollower
from tfprof.collector.store.writer import LocalJobWriter, LocalStoreWriter
from tfprof.formats import layout


def _append(job: LocalJobWriter, first: int, number: int) -> None:
    job.append({"spans": rows("spans", [span(layout.RUN, n, n, 1) for n in range(first, first + number)])})


def _ordinals(new_rows: dict[str, Any]) -> list[int]:
    return new_rows["spans"]["ordinal"].to_pylist() if "spans" in new_rows else []


@pytest.fixture
def store(tmp_path: Path) -> Any:
    writer = LocalStoreWriter(tmp_path / "store", HOST)
    yield writer
    writer.close()


def test_rows_come_once_across_appends_sealings_and_mergings(store: LocalStoreWriter) -> None:
    job = store.job(1)
    job.set_identity(IDENTITY)
    follower, ordinals, next_ordinal = RowFollower(job.folder, ("spans", "events")), [], 1
    for at in range(40):
        for _ in range(at % 4):  # none, one or several appends between two calls
            _append(job, next_ordinal, 3)
            next_ordinal += 3
        if at % 3 == 0:
            job.seal()
        if at % 5 != 4:
            ordinals += _ordinals(follower.new_rows())
    ordinals += _ordinals(follower.new_rows())
    assert ordinals == list(range(1, next_ordinal))
    assert follower.new_rows() == {}


def test_rows_of_a_new_collector_follow_those_of_the_previous_one(tmp_path: Path) -> None:
    folder = catalog.job_folder(tmp_path / "store", 1)
    follower, ordinals = None, []
    for turn in range(3):
        writer = LocalStoreWriter(tmp_path / "store", HOST)
        job = writer.job(1)
        job.set_identity(IDENTITY)
        follower = follower or RowFollower(folder, ("spans",))
        _append(job, 1 + 4 * turn, 4)
        ordinals += _ordinals(follower.new_rows())
        writer.close()
    assert ordinals == list(range(1, 13))
    assert follower.info.state == catalog.RUNNING


def test_an_incomplete_append_is_not_returned(store: LocalStoreWriter) -> None:
    job = store.job(1)
    job.set_identity(IDENTITY)
    _append(job, 1, 2)
    follower = RowFollower(job.folder, ("spans",))
    assert _ordinals(follower.new_rows()) == [1, 2]
    log = next(job.folder.glob("wal-*.log"))
    before = log.read_bytes()
    _append(job, 3, 2)
    after = log.read_bytes()
    log.write_bytes(after[:-5])
    assert follower.new_rows() == {}
    log.write_bytes(after)
    assert _ordinals(follower.new_rows()) == [3, 4]
    assert len(before) < len(after)


def test_a_removed_job_is_reported_and_a_new_one_starts_from_its_first_row(store: LocalStoreWriter) -> None:
    job = store.job(1)
    job.set_identity(IDENTITY)
    _append(job, 1, 5)
    follower = RowFollower(job.folder, ("spans",))
    assert len(_ordinals(follower.new_rows())) == 5
    shutil.rmtree(job.folder)
    with pytest.raises(NoSuchJobError):
        follower.new_rows()
    store.forget(job)
    new_job = store.job(1)
    new_job.set_identity(IDENTITY)
    _append(new_job, 6, 2)
    assert _ordinals(follower.new_rows()) == [6, 7]


def test_the_follower_has_the_latest_job_record(store: LocalStoreWriter) -> None:
    job = store.job(1)
    job.set_identity(IDENTITY)
    follower = RowFollower(job.folder, ("spans",))
    follower.new_rows()
    _append(job, 1, 1)
    job.close("exited", {"status": 3})
    assert _ordinals(follower.new_rows()) == [1]
    assert (follower.info.state, follower.info.end["status"]) == ("exited", 3)
