import contextlib
from pathlib import Path

from fakes.hostile_store import HOSTILE, LONG
from fakes.polling import until
from tfprof.collector.alert_command import QUEUED_MAX, TIMEOUT_S, AlertCommand


def wait_for_end(command: AlertCommand) -> None:
    """Wait until the command that runs has ended."""
    until(lambda: command._running is None or command._running.poll() is not None, "the command's end", timeout_s=30.0)


def living_pids(group: int) -> list[int]:
    """Return the pids of a process group, except those of zombies.

    In a container there may be no process that reaps orphans.
    """
    pids = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, pgrp = stat.read_text().rpartition(")")[2].split()[:3]
            if state != "Z" and int(pgrp) == group:
                pids.append(int(stat.parent.name))
    return pids


def test_the_command_gets_the_alert_in_its_environment(tmp_path):
    command = AlertCommand(f'echo "$TFPROF_ALERT_SLUG: $TFPROF_ALERT_TEXT" >> {tmp_path}/out')
    command.add(1, {"slug": "slower", "text": "$(touch x) 'a' \"b\""}, 0.0)
    command.tick(0.0)
    wait_for_end(command)
    command.tick(0.1)
    assert (tmp_path / "out").read_text() == "slower: $(touch x) 'a' \"b\"\n"


def test_texts_in_the_environment_have_no_control_characters(tmp_path):
    command = AlertCommand(f"env -0 > {tmp_path}/out")
    command.add(1, {"name": HOSTILE, "text": LONG}, 0.0)
    command.tick(0.0)
    wait_for_end(command)
    variables = dict(line.split("=", 1) for line in (tmp_path / "out").read_text().split("\0") if line)
    assert variables["TFPROF_ALERT_NAME"] == "?]0;title??[2J????forged: line????2J????"
    assert variables["TFPROF_ALERT_TEXT"].isprintable()
    assert len(variables["TFPROF_ALERT_TEXT"]) == len(LONG)


def test_a_job_has_one_run_per_minute_and_runs_are_queued(tmp_path):
    command = AlertCommand(f'echo "$TFPROF_ALERT_JOB" >> {tmp_path}/out')
    for uid in (1, 1, 2):
        command.add(uid, {"job": str(uid)}, 0.0)
    for _ in range(3):
        command.tick(1.0)
        wait_for_end(command)
    command.add(1, {"job": "again"}, 61.0)
    command.tick(61.0)
    wait_for_end(command)
    assert (tmp_path / "out").read_text().split() == ["1", "2", "again"]


def test_a_command_that_does_not_end_is_killed_with_its_children(tmp_path):
    command = AlertCommand(f"echo $$ > {tmp_path}/pid; sleep 600; true")
    command.add(1, {}, 0.0)
    command.tick(0.0)
    process = command._running
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the command's start", timeout_s=30.0)
    command.tick(TIMEOUT_S - 1)
    assert process is not None
    assert process.poll() is None
    command.tick(TIMEOUT_S + 1)
    until(lambda: process.poll() is not None, "the end of the command", timeout_s=30.0)
    until(lambda: not living_pids(process.pid), "the end of the group", timeout_s=30.0)


def test_without_a_command_nothing_runs_and_the_queue_is_bounded():
    without_command, with_command = AlertCommand(""), AlertCommand("true")
    for uid in range(100):
        without_command.add(uid, {}, 0.0)
        with_command.add(uid, {}, 0.0)
    without_command.tick(0.0)
    assert without_command._running is None
    assert len(with_command._queue) == QUEUED_MAX
