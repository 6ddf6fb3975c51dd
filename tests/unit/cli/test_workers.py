"""`tfprof workers`: the planted straggler comes first, and only workers of one run are compared.

Tests collector/documents/workers.py, collector/query/workers.py, collector/render/workers_text.py.
"""

import json
from pathlib import Path

import pytest
from fakes.command import Run
from fakes.made_store import rows, span, write_job
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


def test_one_worker_alone_waits_for_nobody(run: Run, store: Path) -> None:
    _, text, _ = run("workers", "4000", "--store", str(store))
    assert text.startswith("Verdict: only one worker of the group was profiled.\n")


def test_a_job_without_a_group_is_refused(run: Run, store: Path) -> None:
    status, _, err = run("workers", "5000", "--store", str(store))
    assert status == 2
    assert "no-group" in err
