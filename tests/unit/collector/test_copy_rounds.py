"""Rounds that copy a store, with a target that only notes what it takes."""

import time
from pathlib import Path

import pytest
from fakes.made_store import write_job
from tfprof.collector import copy_rounds
from tfprof.collector.copy_rounds import CopyRounds
from tfprof.collector.errors import StoreError
from tfprof.collector.store import catalog
from tfprof.collector.store.copying import Copied
from tfprof.collector.store.protocols import JobReader


class _Target:
    """A store that takes copies, and notes the tags of each; `errors`: next errors by uid."""

    oldest_ns = 0

    def __init__(self) -> None:
        self.tags = list[tuple[str, ...]]()
        self.errors = dict[int, str]()

    def has(self, _uid: int) -> bool:
        return bool(self.tags)

    def add(self, job: JobReader) -> Copied:
        if slug := self.errors.pop(job.info.uid, ""):
            raise StoreError("it takes nothing", slug)
        self.tags.append(job.tags())
        return Copied(0, 0)


URL = "clickhouse://there/jobs"


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> _Target:
    target = _Target()
    monkeypatch.setattr(copy_rounds, "_SETTLING_NS", 0)
    monkeypatch.setattr(copy_rounds, "open_target", lambda _url: target)
    return target


def test_tags_that_were_set_between_two_processes_are_copied_once(tmp_path: Path, target: _Target) -> None:
    write_job(tmp_path, 5, {})
    for tag in ("first", "second"):
        catalog.change_tags(catalog.job_folder(tmp_path, 5), lambda _, tag=tag: (tag,))
        time.sleep(0.05)  # more than the times of files are behind
        for _ in range(3):  # processes
            rounds = CopyRounds(tmp_path, URL)
            assert [rounds.run()["error"], rounds.run()["error"]] == [None, None]
    assert target.tags == [("first",), ("second",)]


def test_tags_are_copied_after_a_round_that_ended_early(tmp_path: Path, target: _Target) -> None:
    write_job(tmp_path, 5, {})
    assert CopyRounds(tmp_path, URL).run()["error"] is None
    catalog.change_tags(catalog.job_folder(tmp_path, 5), lambda _: ("late",))
    write_job(tmp_path, 4, {})
    target.errors[5] = "engine-away"
    time.sleep(0.05)
    assert CopyRounds(tmp_path, URL).run()["copied_ns"] is None
    assert target.tags == [(), ()]
    assert CopyRounds(tmp_path, URL).run()["error"] is None
    assert target.tags[2:] == [("late",)]


def test_a_round_with_an_error_that_may_pass_is_not_complete(tmp_path: Path, target: _Target) -> None:
    write_job(tmp_path, 5, {})
    write_job(tmp_path, 6, {})
    rounds = CopyRounds(tmp_path, URL)
    target.errors = {5: "engine-answer", 6: "store-damaged"}
    progress = rounds.run()
    assert (progress["copied_ns"], progress["failed"], progress["error"]["slug"]) == (None, 2, "engine-answer")
    progress = rounds.run()
    assert (progress["failed"], progress["error"]["slug"]) == (1, "store-damaged")
    assert progress["copied_ns"]


def test_an_error_of_the_target_is_not_one_of_each_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_url: str) -> None:
        raise StoreError("it does not tell its release", "engine-answer")

    monkeypatch.setattr(copy_rounds, "open_target", refuse)
    write_job(tmp_path, 5, {})
    progress = CopyRounds(tmp_path, URL).run()
    assert (progress["failed"], progress["error"]["slug"]) == (0, "engine-answer")
