"""A process whose channel is gone is recorded with what the launcher knew about it."""

from pathlib import Path
from typing import Any

import pytest
from tfprof.agent import launches
from tfprof.agent.announcements import Announcement
from tfprof.agent.daemon import lost_processes
from tfprof.agent.launches import Launch, LeftChannel
from tfprof.formats import given_up, runtime_dir

ENDED = Launch(7, 1, 10, "/store", "host", "user", name="nightly", job_pid=4711, ended_ns=99, signal=9)
COUNTERS = {"records": 5, "span_head": 30, "counts": {"batch": 600}}


@pytest.fixture
def instance_dir(tmp_path: Path) -> str:
    for name in (runtime_dir.LAUNCHES, runtime_dir.GIVEN_UP):
        (tmp_path / name).mkdir()
    launches.write(str(tmp_path), ENDED)
    return str(tmp_path)


def recorded(instance_dir: str, pid: int = 4711) -> dict[str, Any]:
    lost_processes.record(instance_dir, Announcement(pid, 0xAB, "channel", 7, 50), "node7")
    ((_, entry),) = given_up.pending(instance_dir)
    assert entry is not None
    return entry


def test_without_the_state_of_its_channel_a_process_is_lost(instance_dir: str) -> None:
    entry = recorded(instance_dir)
    assert (entry["end"]["state"], entry["end"]["signal"]) == ("lost", None)
    assert entry["event"]["slug"] == "too-short"
    assert "records" not in entry["end"]


@pytest.mark.parametrize(("pid", "state", "number"), [(4711, "killed", 9), (4712, "ended", None)])
def test_with_the_state_of_its_channel_its_end_and_its_counters_are_known(
    instance_dir: str, pid: int, state: str, number: int | None
) -> None:
    hello = {"name": "train.py", "framework": "tensorflow", "secret": "x"}
    launches.write_left(instance_dir, 7, LeftChannel(0xAB, hello, COUNTERS))
    entry = recorded(instance_dir, pid)
    assert "event" not in entry
    assert entry["end"].items() >= {**COUNTERS, "state": state, "signal": number}.items()
    assert (entry["identity"]["name"], entry["identity"]["framework"]) == ("nightly", "tensorflow")
    assert "secret" not in entry["identity"]


def test_the_announcement_is_removed_once_the_loss_is_written_down(instance_dir: str) -> None:
    path = Path(instance_dir, runtime_dir.ANNOUNCE, f"4711-{0xAB:016x}")
    path.parent.mkdir()
    path.touch()
    obstacle = Path(instance_dir, runtime_dir.GIVEN_UP, f"{0xAB:016x}.json")
    obstacle.mkdir()
    with pytest.raises(OSError, match="directory"):
        recorded(instance_dir)
    assert path.exists()
    obstacle.rmdir()
    obstacle.with_suffix(".json.4711.tmp").touch()  # of an agent that was killed
    assert not lost_processes.has_waiting_jobs(instance_dir)
    recorded(instance_dir)
    assert (path.exists(), lost_processes.has_waiting_jobs(instance_dir)) == (False, True)
