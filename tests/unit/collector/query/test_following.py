"""Jobs are followed to their ends, each step once, even if the collector restarts.

Tests collector/query/followed.py, too: a folder is also read as any store is.
"""

import socket
from typing import Any

import pytest
from fakes.made_store import IDENTITY, SECOND, START_NS, rows, span
from tfprof.collector.documents.changes import change_document
from tfprof.collector.errors import NoSuchJobError
from tfprof.collector.query import followed, following
from tfprof.collector.query.following import RESTART_TIMEOUT_NS, JobChange, JobFollower
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.retention import remove
from tfprof.collector.store.writer import LocalJobWriter, LocalStoreWriter
from tfprof.formats import layout

HOST = socket.gethostname()
NOW = START_NS + 1000 * SECOND


@pytest.fixture(params=["folder", "any store"])
def kind_of_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Follow the folder as a folder, or as any other store."""
    if request.param == "any store":
        monkeypatch.setattr(following, "followed", followed.PolledStore)
        monkeypatch.setattr(followed, "READING_S", 0.0)


either_kind = pytest.mark.usefixtures("kind_of_store")


def job(writer: LocalStoreWriter, uid: int, name: str = "train.py", launch: str = "") -> LocalJobWriter:
    job_writer = writer.job(uid)
    job_writer.set_identity({**IDENTITY, "name": name, "host": HOST, "launch": launch})
    return job_writer


def append_steps(job_writer: LocalJobWriter, first: int, count: int = 1) -> None:
    """Append steps of 0.9 s each, one a second."""
    entries = [span(layout.BATCH, n, n * 1000, 900) for n in range(first, first + count)]
    job_writer.append({"spans": rows("spans", entries)})


def brief(changes: list[JobChange]) -> list[tuple[Any, ...]]:
    return [
        (change.kind, change.row.id, change.line.first) if change.line else (change.kind, change.row.id)
        for change in changes
    ]


def new_follower(writer: LocalStoreWriter, *selectors: str, past: int | None = None) -> JobFollower:
    return JobFollower(LocalStore(writer.path), selectors, NOW, line_per_entry=False, past=past)


@either_kind
def test_steps_are_followed_as_they_are_stored_until_the_end(writer: LocalStoreWriter) -> None:
    job_writer = job(writer, 0xA << 60)
    append_steps(job_writer, 1, 2)
    follower = new_follower(writer, "train.py")
    changes = follower.update(NOW)
    assert brief(changes) == [("job", "a000"), ("steps", "a000", 1), ("steps", "a000", 2)]
    assert changes[0].row.steps == 2
    assert follower.update(NOW + SECOND) == []
    append_steps(job_writer, 3)
    assert brief(follower.update(NOW + 2 * SECOND)) == [("steps", "a000", 3)]
    append_steps(job_writer, 4)
    job_writer.close("exited", {"status": 3, "counts": {"batch": 4}, "times": {"batch": SECOND}})
    *steps, end = follower.update(NOW + 3 * SECOND)
    assert brief(steps) == [("steps", "a000", 4)]
    assert (end.kind, end.row.status, end.median_ns, follower.is_over) == ("end", 3, 900 * 10**6, True)


@either_kind
def test_the_number_of_past_lines_is_limited(writer: LocalStoreWriter) -> None:
    append_steps(job(writer, 1), 1, 30)
    assert [change.line.first for change in new_follower(writer, "last", past=2).update(NOW)[1:]] == [29, 30]
    assert new_follower(writer, "last", past=0).update(NOW)[1:] == []
    assert len(new_follower(writer, "last").update(NOW)[1:]) == 30


@either_kind
def test_a_name_selects_all_running_jobs_or_else_an_ended_one(writer: LocalStoreWriter) -> None:
    for uid in (0xA << 60, 0xB << 60, 0xC << 60):
        append_steps(job(writer, uid), 1)
    writer.job(0xC << 60).close("exited", {})
    follower = new_follower(writer, "train.py", past=0)
    assert brief(follower.update(NOW)) == [("job", "a000"), ("job", "b000")]
    assert follower.has_several_jobs
    assert brief(new_follower(writer, "c000", past=0).update(NOW)) == [("job", "c000"), ("end", "c000")]
    with pytest.raises(NoSuchJobError):
        new_follower(writer, "nosuch")


@either_kind
def test_later_jobs_of_a_launch_are_followed(writer: LocalStoreWriter) -> None:
    launch = "00000000000000bb"
    job(writer, 0xA << 60, launch=launch)
    job(writer, 0xD << 60, launch="00000000000000cc")
    job(writer, 0xE << 60, launch=launch).close("exited", {})
    follower = new_follower(writer, launch)
    assert brief(follower.update(NOW)) == [("job", "a000")]
    append_steps(job(writer, 0xB << 60, launch=launch), 1)
    assert brief(follower.update(NOW + 3 * SECOND)) == [("job", "b000"), ("steps", "b000", 1)]
    job(writer, 0xC << 60, launch=launch)
    assert brief(follower.update(NOW - 3600 * SECOND)) == [("job", "c000")], "the clock was set back"
    writer.job(0xA << 60).close("exited", {})
    assert brief(follower.update(NOW + 4 * SECOND)) == [("end", "a000")]
    assert not follower.is_over


def test_a_job_without_a_collector_counts_as_ended_only_if_no_collector_comes_back(writer: LocalStoreWriter) -> None:
    append_steps(job(writer, 0xA << 60), 1)
    follower = new_follower(writer, "last")
    follower.update(NOW)
    writer.close()
    (gone,) = follower.update(NOW + 6 * SECOND)
    assert (gone.kind, gone.back) == ("collector", False)
    second_writer = LocalStoreWriter(writer.path, HOST)
    try:
        append_steps(job(second_writer, 0xA << 60), 2)
        assert brief(follower.update(NOW + 7 * SECOND)) == [("steps", "a000", 2)]
        (back,) = follower.update(NOW + 13 * SECOND)
        assert (back.kind, back.back) == ("collector", True)
    finally:
        second_writer.close()
    follower.update(NOW + 20 * SECOND)
    *_, end = follower.update(NOW + 20 * SECOND + RESTART_TIMEOUT_NS + SECOND)
    assert (end.kind, end.row.state, follower.is_over) == ("end", "stale", True)


@either_kind
def test_a_removed_job_is_an_error(writer: LocalStoreWriter) -> None:
    job_writer = job(writer, 0xA << 60)
    follower = new_follower(writer, "last")
    follower.update(NOW)
    remove(writer.path, 0xA << 60)
    writer.forget(job_writer)
    with pytest.raises(NoSuchJobError):
        follower.update(NOW + SECOND)


@either_kind
def test_only_unusual_events_are_reported(writer: LocalStoreWriter) -> None:
    job_writer = job(writer, 0xA << 60)
    follower = new_follower(writer, "last")
    follower.update(NOW)
    events = [{"t_ns": NOW, "slug": slug, "text": "it", "count": 1} for slug in ("gap", "outside-steps")]
    job_writer.append({"events": rows("events", events)})
    (shown,) = follower.update(NOW + SECOND)
    assert (shown.kind, shown.event.slug) == ("warning", "gap")
    assert change_document(shown)["slug"] == "gap"


def test_a_store_that_is_not_a_folder_is_read_at_intervals(
    writer: LocalStoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "followed", followed.PolledStore)
    job_writer = job(writer, 0xA << 60)
    append_steps(job_writer, 1)
    follower = new_follower(writer, "last")
    assert len(follower.update(NOW)) == 2
    append_steps(job_writer, 2)
    assert follower.update(NOW + SECOND) == []
    monkeypatch.setattr(followed, "READING_S", 0.0)
    assert len(follower.update(NOW + 2 * SECOND)) == 1
