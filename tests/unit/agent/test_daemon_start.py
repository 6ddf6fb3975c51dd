"""A daemon that does not run is started, and started again with a growing delay if it fails.

Tests formats/private_files.py.
"""

import os
import time
from itertools import pairwise
from pathlib import Path

import pytest
from tfprof.agent import daemon_start
from tfprof.agent.daemon_start import DaemonSupervisor
from tfprof.commands import daemons
from tfprof.formats import private_files

NAME = daemon_start.COLLECTOR


class Clock:
    def __init__(self) -> None:
        self.now = time.monotonic()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake_clock = Clock()
    monkeypatch.setattr("tfprof.agent.daemon_start.time.monotonic", fake_clock)
    return fake_clock


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(daemon_start, "start_daemon", lambda _instance_dir, _store, name: names.append(name))
    return names


def slug(supervisor: DaemonSupervisor) -> str | None:
    failure = supervisor.failure
    return None if failure is None else failure["slug"]


def write_failure(instance_dir: Path) -> None:
    status = {
        "pid": 1,
        "written_ns": time.time_ns(),
        daemons.FAILED: True,
        "last_error": {"slug": "store", "text": "no"},
    }
    private_files.write_json(str(instance_dir / f"{NAME}.json"), status)


def test_a_daemon_that_does_not_come_up_is_retried_with_growing_delay_and_then_reported(
    tmp_path, clock, starts
) -> None:
    supervisor = DaemonSupervisor(str(tmp_path), "/s", NAME)
    (tmp_path / f"{NAME}.log").write_text("first\nlast words\n")
    start_times = []
    for _ in range(80):
        before = len(starts)
        assert not supervisor.ensure_running()
        if len(starts) > before:
            start_times.append(round(clock.now, 1))
        clock.now += 0.1
    assert [round(later - earlier) for earlier, later in pairwise(start_times)] == [1, 2, 4]
    failure = supervisor.failure
    assert failure is not None
    assert failure["slug"] == NAME
    assert "last words" in failure["text"]


def test_a_daemon_that_reports_its_failure_is_reported_at_once_and_retried_late(tmp_path, clock, starts) -> None:
    write_failure(tmp_path)  # an earlier failure
    supervisor = DaemonSupervisor(str(tmp_path), "/s", NAME)
    supervisor.ensure_running()
    assert slug(supervisor) is None
    write_failure(tmp_path)
    assert supervisor.failure == {"slug": "store", "text": "no"}
    clock.now += daemon_start.MAX_DELAY_S - 1
    supervisor.ensure_running()
    assert len(starts) == 1
    supervisor.reset_delay()
    supervisor.ensure_running()
    assert len(starts) == 2
    assert slug(supervisor) is None


def test_a_daemon_that_holds_its_lock_and_then_fails_has_not_come_up(tmp_path, clock, starts) -> None:
    supervisor = DaemonSupervisor(str(tmp_path), "/s", NAME)
    supervisor.ensure_running()
    lock = daemons.PidFileLock(str(tmp_path), NAME)
    assert lock.acquire()
    clock.now += 10
    assert supervisor.ensure_running()
    write_failure(tmp_path)
    lock.release()
    assert not supervisor.ensure_running()
    assert slug(supervisor) == "store"
    assert len(starts) == 1


def test_a_daemon_that_came_up_and_was_killed_is_restarted_at_once(tmp_path, clock, starts) -> None:
    supervisor = DaemonSupervisor(str(tmp_path), "/s", NAME)
    supervisor.ensure_running()
    (tmp_path / f"{NAME}.pid").write_text("77\n")
    private_files.write_json(str(tmp_path / f"{NAME}.json"), {"pid": 77})
    clock.now += 0.1
    supervisor.ensure_running()
    assert (len(starts), supervisor.pid) == (2, 77)


def test_a_daemon_that_cannot_be_started_is_reported(tmp_path, clock) -> None:
    os.mkfifo(tmp_path / f"{NAME}.log")
    supervisor = DaemonSupervisor(str(tmp_path), "/s", NAME)
    with pytest.raises(daemons.DaemonError):
        supervisor.ensure_running()
    assert slug(supervisor) == "daemon"
    assert not supervisor.ensure_running()
    clock.now += daemon_start.FIRST_DELAY_S
    with pytest.raises(daemons.DaemonError):
        supervisor.ensure_running()


def test_a_daemon_that_is_starting_is_not_started_again(tmp_path, monkeypatch) -> None:
    spawned = []
    monkeypatch.setattr(daemons, "spawn", lambda *arguments: spawned.append(arguments))
    lock = daemons.PidFileLock(str(tmp_path), NAME)
    assert lock.take()
    daemon_start.start_daemon(str(tmp_path), "/s", NAME)
    assert not spawned
    lock.release()
    daemon_start.start_daemon(str(tmp_path), "/s", NAME)
    assert len(spawned) == 1


def test_a_daemon_whose_pid_file_cannot_be_used_is_not_started(tmp_path) -> None:
    os.mkfifo(tmp_path / f"{NAME}.pid")
    with pytest.raises(daemons.DaemonError, match=f"cannot use {tmp_path}/{NAME}.pid: .*runtime-dir"):
        daemon_start.start_daemon(str(tmp_path), "/s", NAME)


def test_a_failure_has_the_slug_of_the_last_log_line_unless_that_line_is_old(tmp_path) -> None:
    log = tmp_path / "collector.log"
    log.write_text("tfprof: one thing [store]\ntfprof: another collector serves it [store-in-use]\n")
    failure = daemon_start.failure_from_log(str(tmp_path), "collector")
    assert failure == {
        "slug": "store-in-use",
        "text": f"the collector does not start: another collector serves it (see {log})",
    }
    log.write_text("Killed\n")
    assert daemon_start.failure_from_log(str(tmp_path), "collector")["slug"] == "collector"
    later_ns = log.stat().st_mtime_ns + 1
    assert "its log is empty" in daemon_start.failure_from_log(str(tmp_path), "collector", later_ns)["text"]
    assert "its log is empty" in daemon_start.failure_from_log(str(tmp_path), "agent")["text"]


def test_a_daemon_that_a_user_has_stopped_is_told_from_one_that_was_started_since(tmp_path, clock, starts) -> None:
    supervisor = DaemonSupervisor(str(tmp_path), "/s", NAME)
    states = [supervisor.was_stopped]
    private_files.write_json(str(tmp_path / f"{NAME}.json"), {"stopped": True})
    states.append(supervisor.was_stopped)
    supervisor.ensure_running()
    assert [*states, supervisor.was_stopped] == [False, True, False]
