"""`tfprof workers`: the planted straggler comes first, and only workers of one run are compared.

Tests collector/documents/workers.py, collector/query/workers.py, collector/render/workers_text.py.
"""

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.command import Run
from fakes.made_store import HOST, SECOND, START_NS, rows, span, write_job
from tfprof.collector.store.catalog import JOB_FILE, JobInfo, job_folder, load
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.formats import layout


def write_worker(store: Path, uid: int, task: int, late_ms: float, group: str | None, state: str | None = None) -> None:
    """Write a worker; its steps begin ``late_ms`` later than those of others, and end with them."""
    spans = [span(layout.RUN, step, 100 * step + late_ms, 90 - late_ms) for step in range(1, 21)]
    identity = {"name": "worker.py", "group": group, "tags": {"tf_task": f"worker:{task}"}, "pid": 100 + task}
    write_job(store, uid, {"spans": rows("spans", spans)}, state=state, identity=identity)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "workers"
    write_worker(path, 1 << 60, 0, 70, "tf-12345678", state="exited")  # an earlier run of the same cluster
    write_worker(path, 2 << 60, 0, 0, "tf-12345678")
    write_worker(path, 3 << 60, 1, 40, "tf-12345678")
    write_worker(path, 4 << 60, 0, 60, "tf-87654321")
    write_worker(path, 5 << 60, 0, 60, None)
    return path


@pytest.mark.parametrize("selector", ["2000", "3000", "tf-12345678"])
def test_the_straggler_is_first(run: Run, store: Path, selector: str) -> None:
    status, text, err = run("workers", selector, "--json", "--store", str(store))
    assert (status, err) == (0, "")
    document = json.loads(text)
    assert (document["group"], document["source"]) == ("tf-12345678", "step starts")
    workers = [(worker["name"], worker["behind_ns"], worker["last"]) for worker in document["workers"]]
    assert workers == [("worker:1", 40e6, workers[0][2]), ("worker:0", 0, 0)]
    assert workers[0][2] == document["workers"][0]["common"] > 10


def test_the_screen_names_the_straggler(run: Run, store: Path) -> None:
    _, text, _ = run("workers", "2000", "--store", str(store))
    assert text.startswith("Verdict: the others wait 40.0 ms in each step for worker:1.\n")


def test_an_earlier_run_that_was_never_closed_is_another_one(run: Run, store: Path) -> None:
    write_worker(store, 8 << 60, 1, 0, "tf-12345678")
    folder = job_folder(store, 8 << 60)
    info = load(folder)
    (folder / JOB_FILE).write_bytes(replace(info, opened_ns=info.opened_ns - 86400 * SECOND).dump())
    for path in (folder, *folder.iterdir()):
        os.utime(path, (time.time() - 80000,) * 2)
    _, text, _ = run("workers", "2000", "--store", str(store))
    assert text.startswith("Verdict: the others wait 40.0 ms in each step for worker:1.\n")


def test_an_evaluator_is_listed_and_not_compared(run: Run, store: Path) -> None:
    steps = [span(layout.RUN, step, 400 * step, 390) for step in range(1, 6)]
    identity = {"name": "worker.py", "group": "tf-12345678", "tags": {"tf_task": "evaluator:0"}, "pid": 109}
    write_job(store, 9 << 60, {"spans": rows("spans", steps)}, state=None, identity=identity)
    _, text, _ = run("workers", "2000", "--store", str(store))
    assert text.startswith("Verdict: the others wait 40.0 ms in each step for worker:1.\n")
    assert "evaluator:0" in text


def test_one_worker_alone_waits_for_nobody(run: Run, store: Path) -> None:
    _, text, _ = run("workers", "4000", "--store", str(store))
    assert text.startswith("Verdict: only one worker of the group was profiled.\n")


def test_a_job_without_a_group_is_refused(run: Run, store: Path) -> None:
    status, _, err = run("workers", "5000", "--store", str(store))
    assert status == 2
    assert "no-group" in err


def test_an_imported_job_has_no_group(run: Run, tmp_path: Path) -> None:
    write_worker(tmp_path, 5 << 60, 0, 60, None, "imported")
    assert (
        "its files name no cluster; `tfprof diff A B` compares two hosts [no-group]"
        in (run("workers", "5000", "--store", str(tmp_path))[2])
    )


def test_runs_that_are_imported_together_are_apart(run: Run, tmp_path: Path) -> None:
    store = LocalStoreWriter(tmp_path, HOST)
    for number in range(2):
        begun = START_NS + number * 1000 * SECOND
        info = JobInfo(1 + number << 60, opened_ns=begun, identity={"group": "tf-1", "created_real_ns": begun})
        store.job(info.uid).close("exited")
        path = job_folder(tmp_path, info.uid) / JOB_FILE
        path.write_bytes(replace(info, state="exited", end={"t_ns": begun + SECOND}, closed_ns=time.time_ns()).dump())
    store.close()
    assert len(json.loads(run("workers", "2000", "--json", "--store", str(tmp_path))[1])["workers"]) == 1


def write_coordinator(store: Path, threads: int) -> None:
    """Write a coordinator that dispatches steps to ``threads`` workers; the last one is slow."""
    calls = [
        {
            **span(layout.FUNCTION, 20 * thread + step, (30 if thread == threads - 1 else 10) * step, 5),
            "thread": 7 + thread,
        }
        for thread in range(threads)
        for step in range(20)
    ]
    calls.append(span(layout.FUNCTION, 20 * threads, 0, 5))  # that of a checkpoint, in the main thread
    identity = {"name": "coordinator.py", "group": "tf-99999999", "tags": {"tf_task": "chief:0"}, "pid": 1}
    write_job(store, 6 << 60, {"spans": rows("spans", calls)}, state=None, identity=identity)
    for place, task in enumerate(("ps:0", "worker:10", "worker:9")):
        identity = {"name": "server.py", "group": "tf-99999999", "tags": {"tf_task": task}, "pid": 2 + place}
        write_job(store, (7 << 60) + (place << 56), {}, state=None, identity=identity)


def test_steps_that_a_coordinator_dispatches_are_those_of_its_workers(run: Run, store: Path) -> None:
    write_coordinator(store, 2)
    _, text, err = run("workers", "6000", "--json", "--store", str(store))
    assert err == ""
    document = json.loads(text)
    assert document["source"] == "step to step"
    workers = [(worker["name"], worker["steps"], worker["period_ns"]) for worker in document["workers"]]
    assert workers == [("worker:10", 20, 30e6), ("worker:9", 20, 10e6), ("chief:0", 0, None), ("ps:0", 0, None)]
    _, text, _ = run("workers", "6000", "--store", str(store))
    assert "worker:10 is the slowest, 30.0 ms from step to step, 3.0 times as long as worker:9" in text
    assert text.endswith("next: tfprof breakdown 6000 · tfprof spans 6000 · tfprof advise 6000\n")


def test_dispatched_steps_are_the_coordinators_if_a_worker_is_not_known(run: Run, store: Path) -> None:
    write_coordinator(store, 3)
    _, text, _ = run("workers", "6000", "--store", str(store))
    assert text.startswith("Verdict: only chief:0 runs steps of its own, so there is nothing to compare.\n")
