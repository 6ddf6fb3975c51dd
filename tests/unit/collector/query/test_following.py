"""Jobs that are followed: each step once, until they end, whatever their collector does."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.made_store import IDENTITY, SECOND, START_NS, rows, span
from tfprof.collector.errors import NoSuchJobError
from tfprof.collector.query.documents import change_document
from tfprof.collector.query.following import PATIENCE_NS, Following, JobChange
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.retention import remove
from tfprof.collector.store.writer import LocalJobWriter, LocalStoreWriter
from tfprof.formats import layout

HOST = socket.gethostname()
NOW = START_NS + 1000 * SECOND


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LocalStoreWriter]:
    made = LocalStoreWriter(tmp_path / "store", HOST)
    yield made
    made.close()


def job(writer: LocalStoreWriter, uid: int, name: str = "train.py", launch: str = "") -> LocalJobWriter:
    made = writer.job(uid)
    made.identity({**IDENTITY, "name": name, "host": HOST, "launch": launch})
    return made


def step(made: LocalJobWriter, first: int, number: int = 1) -> None:
    """Append steps of 0.9 s each, one a second."""
    entries = [span(layout.BATCH, n, n * 1000, 900) for n in range(first, first + number)]
    made.append({"spans": rows("spans", entries)})


def brief(found: list[JobChange]) -> list[tuple[Any, ...]]:
    return [(one.what, one.row.id, one.line.first) if one.line else (one.what, one.row.id) for one in found]


def following(writer: LocalStoreWriter, *selectors: str, past: int | None = None) -> Following:
    return Following(LocalStore(writer.path), selectors, NOW, each=False, past=past)


def test_steps_come_as_they_are_stored_and_the_end_ends_it(writer: LocalStoreWriter) -> None:
    one = job(writer, 0xA << 60)
    step(one, 1, 2)
    follow = following(writer, "train.py")
    assert brief(follow.look(NOW)) == [("job", "a000"), ("steps", "a000", 1), ("steps", "a000", 2)]
    assert follow.look(NOW + SECOND) == []
    step(one, 3)
    assert brief(follow.look(NOW + 2 * SECOND)) == [("steps", "a000", 3)]
    step(one, 4)
    one.close("exited", {"status": 3, "counts": {"batch": 4}, "times": {"batch": SECOND}})
    *steps, end = follow.look(NOW + 3 * SECOND)
    assert brief(steps) == [("steps", "a000", 4)]
    assert (end.what, end.row.status, end.median_ns, follow.is_over) == ("end", 3, 900 * 10**6, True)


def test_of_the_past_as_many_lines_come_as_are_asked_for(writer: LocalStoreWriter) -> None:
    step(job(writer, 1), 1, 30)
    assert [one.line.first for one in following(writer, "last", past=2).look(NOW)[1:]] == [29, 30]
    assert following(writer, "last", past=0).look(NOW)[1:] == []
    assert len(following(writer, "last").look(NOW)[1:]) == 30


def test_a_name_means_all_that_run_and_an_ended_job_only_where_none_does(writer: LocalStoreWriter) -> None:
    for uid in (0xA << 60, 0xB << 60, 0xC << 60):
        step(job(writer, uid), 1)
    writer.job(0xC << 60).close("exited", {})
    found = following(writer, "train.py", past=0)
    assert brief(found.look(NOW)) == [("job", "a000"), ("job", "b000")]
    assert found.are_several
    assert brief(following(writer, "c000", past=0).look(NOW)) == [("job", "c000"), ("end", "c000")]
    with pytest.raises(NoSuchJobError):
        following(writer, "nosuch")


def test_processes_of_a_launch_are_followed_when_they_come(writer: LocalStoreWriter) -> None:
    launch = "00000000000000bb"
    job(writer, 0xA << 60, launch=launch)
    job(writer, 0xD << 60, launch="00000000000000cc")
    follow = following(writer, launch)
    assert brief(follow.look(NOW)) == [("job", "a000")]
    step(job(writer, 0xB << 60, launch=launch), 1)
    assert brief(follow.look(NOW + 3 * SECOND)) == [("job", "b000"), ("steps", "b000", 1)]
    writer.job(0xA << 60).close("exited", {})
    assert brief(follow.look(NOW + 4 * SECOND)) == [("end", "a000")]
    assert not follow.is_over


def test_a_collector_that_comes_back_is_no_end_and_one_that_does_not_is(writer: LocalStoreWriter) -> None:
    step(job(writer, 0xA << 60), 1)
    follow = following(writer, "last")
    follow.look(NOW)
    writer.close()
    (gone,) = follow.look(NOW + 6 * SECOND)
    assert (gone.what, gone.back) == ("collector", False)
    second = LocalStoreWriter(writer.path, HOST)
    try:
        step(job(second, 0xA << 60), 2)
        assert brief(follow.look(NOW + 7 * SECOND)) == [("steps", "a000", 2)]
        (back,) = follow.look(NOW + 13 * SECOND)
        assert (back.what, back.back) == ("collector", True)
    finally:
        second.close()
    follow.look(NOW + 20 * SECOND)
    *_, end = follow.look(NOW + 20 * SECOND + PATIENCE_NS + SECOND)
    assert (end.what, end.row.state, follow.is_over) == ("end", "stale", True)


def test_a_job_that_is_removed_is_said_so(writer: LocalStoreWriter) -> None:
    one = job(writer, 0xA << 60)
    follow = following(writer, "last")
    follow.look(NOW)
    remove(writer.path, 0xA << 60)
    writer.forget(one)
    with pytest.raises(NoSuchJobError):
        follow.look(NOW + SECOND)


def test_what_befell_a_job_is_told_unless_it_is_usual(writer: LocalStoreWriter) -> None:
    one = job(writer, 0xA << 60)
    follow = following(writer, "last")
    follow.look(NOW)
    events = [{"t_ns": NOW, "slug": slug, "text": "it", "count": 1} for slug in ("gap", "outside-steps")]
    one.append({"events": rows("events", events)})
    (told,) = follow.look(NOW + SECOND)
    assert (told.what, told.event.slug) == ("warning", "gap")
    assert change_document(told)["slug"] == "gap"
