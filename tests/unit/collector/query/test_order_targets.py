"""The jobs that get an order."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.made_store import IDENTITY
from tfprof.collector.errors import NoSuchJobError, UsageError
from tfprof.collector.query.order_targets import jobs_for_order, workers_for_order
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.commands.proc_stat import read_stat

HERE = socket.gethostname()


def stale_store(path: Path, *identities: dict[str, Any]) -> LocalStore:
    """Return a store of this host with running jobs and without a collector."""
    writer = LocalStoreWriter(path, HERE)
    for uid, identity in enumerate(identities, 1):
        writer.job(uid).set_identity({**IDENTITY, "host": HERE, **identity})
    writer.close()
    return LocalStore(path)


def identity_of(pid: int) -> dict[str, int]:
    """Return the identity of process ``pid``."""
    stat = read_stat(pid)
    assert stat is not None
    return {"pid": pid, "started": stat.started}


def own_identity() -> dict[str, int]:
    """Return the identity of this process."""
    return identity_of(os.getpid())


def test_an_order_to_all_jobs_goes_to_jobs_whose_process_may_run(tmp_path: Path) -> None:
    earlier_process = own_identity() | {"started": own_identity()["started"] - 1}
    store = stale_store(tmp_path, own_identity(), earlier_process, {"pid": 2**22 + 1, "started": 5}, {"pid": None})
    assert {job.info.state for job in store.jobs()} == {"stale"}
    assert [(job.info.uid, job.may_run) for job in jobs_for_order(store, (), all_jobs=True)] == [(1, True)]
    assert [job.may_run for job in jobs_for_order(store, [f"{uid:016x}" for uid in (1, 2, 3, 4)])] == [
        True,
        False,
        False,
        False,
    ]


def test_a_process_that_ended_gets_no_order_though_its_parent_has_not_waited_for_it(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as child:
        store = stale_store(tmp_path, identity_of(child.pid))
        assert [job.may_run for job in jobs_for_order(store, [f"{1:016x}"])] == [True]
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert [job.may_run for job in jobs_for_order(store, [f"{1:016x}"])] == [False]
        with pytest.raises(NoSuchJobError, match="no such job is running"):
            jobs_for_order(store, (), all_jobs=True)


def test_an_order_to_a_stale_job_of_a_node_is_for_its_agent_to_refuse(tmp_path: Path) -> None:
    store = stale_store(tmp_path, own_identity(), {"pid": 2**22 + 1, "started": 5, "node": "node1", "host": "node1"})
    assert [(job.info.uid, job.may_run) for job in jobs_for_order(store, [f"{2:016x}"])] == [(2, True)]
    assert [job.info.uid for job in jobs_for_order(store, (), all_jobs=True)] == [1]


def test_the_workers_of_a_group_are_those_that_may_run(tmp_path: Path) -> None:
    dead = {"pid": 2**22 + 1, "started": 5}
    workers = [own_identity(), dead, {**dead, "node": "node1", "host": "node1"}]
    store = stale_store(tmp_path, *({**worker, "group": "tf-1"} for worker in workers), own_identity())
    for selector in ("tf-1", f"{2:016x}"):
        assert [(job.info.uid, job.may_run) for job in workers_for_order(store, selector)] == [(1, True), (3, True)]
    with pytest.raises(UsageError, match="belongs to no distributed job"):
        workers_for_order(store, f"{4:016x}")


def test_a_group_without_a_running_worker_is_refused(tmp_path: Path) -> None:
    store = stale_store(tmp_path, {"pid": 2**22 + 1, "started": 5, "group": "tf-1"})
    with pytest.raises(NoSuchJobError, match="no worker of tf-1 is running"):
        workers_for_order(store, "tf-1")


def test_an_order_without_a_running_job_is_refused(tmp_path: Path) -> None:
    store = stale_store(tmp_path, {"pid": 2**22 + 1, "started": 5})
    with pytest.raises(NoSuchJobError, match="no such job is running"):
        jobs_for_order(store, (), all_jobs=True)
