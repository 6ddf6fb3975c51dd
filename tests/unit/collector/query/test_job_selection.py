"""Selection of jobs by selectors, hosts and process ids."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from fakes.made_store import write_job
from tfprof.collector.errors import NoSuchJobError, StoreError, UsageError
from tfprof.collector.query.job_selection import check_criteria, choose
from tfprof.collector.store.reader import LocalStore

A, B, C, D = 0xAA00000000000001, 0xBB00000000000002, 0xBB00000000000003, 0xDD00000000000004


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> LocalStore:
    """Four jobs: a and b on node7, c and d on node8.

    b and c have the same name, d and a the same pid.
    """
    path = tmp_path_factory.mktemp("selection") / "store"
    for uid, name, host, pid in (
        (A, "a.py", "node7", 1),
        (B, "b.py", "node7", 2),
        (C, "b.py", "Node8", 3),
        (D, "d.py", "node8", 1),
    ):
        write_job(path, uid, {}, identity={"name": name, "host": host, "pid": pid})
    return LocalStore(path)


def chosen_uids(
    store: LocalStore, selectors: Sequence[str], hosts: Sequence[str] = (), pids: Sequence[int] = ()
) -> list[int]:
    return [job.info.uid for job in choose(store, selectors, hosts, pids)]


def test_each_selector_names_one_job_and_jobs_are_not_repeated(store: LocalStore) -> None:
    assert chosen_uids(store, ["last", "a.py", "aa", "bb00000000000002"]) == [D, A, B]


def test_without_a_selector_all_jobs_of_the_given_hosts_and_pids_are_selected(store: LocalStore) -> None:
    assert chosen_uids(store, [], ["node7"]) == [A, B]
    assert chosen_uids(store, [], ["NODE8"]) == [C, D]
    assert chosen_uids(store, [], ["*7", "node8"], [1]) == [A, D]
    assert chosen_uids(store, [], [], [2, 3]) == [B, C]


def test_selectors_apply_only_to_jobs_of_the_given_hosts_and_pids(store: LocalStore) -> None:
    assert chosen_uids(store, ["b.py"], ["node7"]) == [B]
    assert chosen_uids(store, ["last"], [], [1]) == [D]
    assert chosen_uids(store, ["b.py"], ["node8"]) == [C]
    with pytest.raises(NoSuchJobError, match=r"no job 'a\.py'"):
        choose(store, ["a.py"], ["node8"])


def test_the_error_about_a_missing_job_lists_what_exists(store: LocalStore) -> None:
    with pytest.raises(NoSuchJobError, match="no job of host moon: there are jobs of Node8 node7 node8"):
        choose(store, [], ["moon"])
    with pytest.raises(NoSuchJobError, match="no job of pid 9"):
        choose(store, [], [], [9])
    with pytest.raises(NoSuchJobError, match="no job of pid 3"):
        choose(store, [], ["node7"], [3])


def test_a_selection_is_required(store: LocalStore) -> None:
    with pytest.raises(UsageError, match="no JOB given"):
        choose(store, [])
    check_criteria(["last"])
    check_criteria([], [], [0])


def test_an_unreadable_job_is_an_error_when_it_is_selected(tmp_path: Path) -> None:
    write_job(tmp_path / "s", A, {})
    (tmp_path / "s" / "jobs" / f"{A:016x}" / "job.json").write_text("{")
    with pytest.raises(StoreError):
        choose(LocalStore(tmp_path / "s"), [f"{A:016x}"])
