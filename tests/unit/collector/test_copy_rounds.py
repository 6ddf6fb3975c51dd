"""Rounds that copy a store, with a target that only notes what it takes."""

import time
from pathlib import Path

import pytest
from fakes.made_store import write_job
from tfprof.collector import copy_rounds
from tfprof.collector.copy_rounds import CopyRounds
from tfprof.collector.store import catalog
from tfprof.collector.store.copying import Copied
from tfprof.collector.store.protocols import JobReader


class _Target:
    """A store that takes copies, and notes the tags of each."""

    def __init__(self) -> None:
        self.tags = list[tuple[str, ...]]()

    def has(self, _uid: int) -> bool:
        return bool(self.tags)

    def add(self, job: JobReader) -> Copied:
        self.tags.append(job.tags())
        return Copied(0, 0)


def test_tags_that_were_set_between_two_processes_are_copied_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = _Target()
    monkeypatch.setattr(copy_rounds, "_SETTLING_NS", 0)
    monkeypatch.setattr(copy_rounds, "open_target", lambda _url: target)
    write_job(tmp_path, 5, {})
    for tag in ("first", "second"):
        catalog.change_tags(catalog.job_folder(tmp_path, 5), lambda _, tag=tag: (tag,))
        time.sleep(0.05)  # more than the times of files are behind
        for _ in range(3):  # processes
            rounds = CopyRounds(tmp_path, "clickhouse://there/jobs")
            assert [rounds.run()["error"], rounds.run()["error"]] == [None, None]
    assert target.tags == [("first",), ("second",)]
