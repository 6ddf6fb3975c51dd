"""`tag` and `rm` on a store with invented jobs: text, JSON, errors.

Tests collector/query/listing.py, cli/rm.py, cli/tag.py.
"""

import json
import os
import socket
from pathlib import Path

import pytest
from fakes.command import Run
from fakes.ended_jobs import LIVE, OTHER, TRAIN
from fakes.made_store import IDENTITY
from tfprof.collector.store import catalog
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter

# -- tag ------------------------------------------------------------------------------------------


def test_ended_and_running_jobs_can_be_tagged(run: Run, writer: LocalStoreWriter) -> None:
    assert run("tag", "7f3a", "baseline", "lr 0.1") == (0, "baseline\nlr 0.1\n", "")
    assert run("tag", "7f3a", "baseline", "x")[1].split("\n")[:3] == ["baseline", "lr 0.1", "x"]
    run("tag", "live.py", "mine")
    writer.job(LIVE).close("exited", {})  # closing rewrites job.json, which does not contain tags
    assert run("tag", "1234")[1] == "mine\n"
    assert [job["tags"] for job in json.loads(run("jobs", "--json")[1])["jobs"]] == [
        ["baseline", "lr 0.1", "x"],
        [],
        ["mine"],
    ]


def test_tags_can_be_removed(run: Run) -> None:
    run("tag", "7f3a", "a", "b", "c")
    assert run("tag", "7f3a", "--remove", "b")[1] == "a\nc\n"
    document = {"schema": "tfprof.tag/1", "job": f"{TRAIN:016x}", "tags": []}
    assert run("tag", "7f3a", "--remove", "--json")[1] == json.dumps(document, indent=2) + "\n"
    code, _, err = run("tag", "7f3a", "--remove", "b")
    assert (code, "the job has no tag 'b'" in err) == (2, True)


@pytest.mark.parametrize("text", ["{", "[]", '{"tags": 3}', '{"tags": [1, "kept"]}', ""])
def test_an_invalid_file_of_tags_does_no_harm(run: Run, store: Path, text: str) -> None:
    (catalog.job_folder(store, TRAIN) / catalog.TAGS_FILE).write_text(text)
    code, out, _ = run("jobs", "--json")
    assert code == 0
    assert json.loads(out)["jobs"][0]["tags"] in ([], ["kept"])
    assert run("tag", "7f3a", "new")[1].endswith("new\n")


def test_a_pipe_instead_of_the_file_of_tags_does_not_block(run: Run, store: Path) -> None:
    os.mkfifo(catalog.job_folder(store, TRAIN) / catalog.TAGS_FILE)
    assert run("tag", "7f3a") == (0, "", "tfprof: no tags\n")


# -- rm -------------------------------------------------------------------------------------------


def remaining_jobs(store: Path) -> list[str]:
    return sorted(path.name[:4] for path in (store / "jobs").iterdir())


def test_rm_removes_ended_jobs_completely(run: Run, store: Path, writer: LocalStoreWriter) -> None:
    code, out, err = run("rm", "--yes", "7f3a")
    assert (code, err) == (0, "")
    assert out.startswith("removed 1 job, ")
    assert remaining_jobs(store) == ["1234", "7f3b"]
    assert json.loads(run("rm", "--yes", "7f3b", "--json")[1])["removed"] == [f"{OTHER:016x}"]


def test_rm_refuses_a_running_job_and_removes_none(run: Run, store: Path, writer: LocalStoreWriter) -> None:
    code, _, err = run("rm", "--yes", "7f3a", "live.py")
    assert (code, "[job-running]" in err) == (1, True)
    assert remaining_jobs(store) == ["1234", "7f3a", "7f3b"]


def test_rm_removes_the_selected_jobs(run: Run, store: Path, writer: LocalStoreWriter) -> None:
    assert run("rm", "--name", "OTH*", "--yes")[0] == 0
    assert remaining_jobs(store) == ["1234", "7f3a"]
    assert "nothing was removed" in run("rm", "--older-than", "2020-01-01", "--yes")[2]
    assert run("rm", "--older-than", "1d", "--yes")[0] == 0
    assert remaining_jobs(store) == ["1234"]
    assert "nothing was removed" in run("rm", "--all", "--yes")[2]


def test_rm_removes_a_job_whose_collector_ended_unless_its_process_runs(
    run: Run, store: Path, writer: LocalStoreWriter
) -> None:
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    identity = {"name": "mine.py", "host": socket.gethostname(), "pid": os.getpid(), "started": int(stat[19])}
    writer.job(0x5678 << 48).set_identity(identity)
    writer.close()
    assert run("rm", "--older-than", "1d", "--yes")[0] == 0
    assert remaining_jobs(store) == ["1234", "5678"]
    assert run("rm", "--all", "--yes")[0] == 0
    assert remaining_jobs(store) == ["5678"]


@pytest.mark.parametrize("word", ["--all", "7f3a"])
def test_rm_needs_yes_without_a_terminal(run: Run, store: Path, word: str) -> None:
    code, _, err = run("rm", word)
    assert (code, "--yes" in err) == (2, True)
    assert remaining_jobs(store) == ["7f3a", "7f3b"]


def test_a_stale_job_can_be_removed_unless_its_process_is_alive(run: Run, store: Path) -> None:
    own_start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    for uid, started in ((LIVE, own_start), (LIVE + 1, own_start + 1)):
        writer = LocalStoreWriter(store, socket.gethostname())
        writer.job(uid).set_identity({**IDENTITY, "name": f"{uid & 1}.py", "pid": os.getpid(), "started": started})
        writer.close()
    assert LocalStore(store).job("0.py").info.state == "stale"
    assert "[job-running]" in run("rm", "--yes", "0.py")[2]
    assert run("rm", "--yes", "1.py")[0] == 0


def test_leftovers_of_an_interrupted_removal_do_no_harm(run: Run, store: Path) -> None:
    leftover = store / "jobs" / f".removed-{TRAIN:016x}"
    leftover.mkdir()
    (leftover / "spans-000000.parquet").write_text("x")
    assert run("rm", "--yes", "7f3a")[0] == 0
    assert remaining_jobs(store) == ["7f3b"]
