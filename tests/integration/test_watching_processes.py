"""`tfprof follow` and `tfprof top` as processes, beside a process that writes to their store."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TFPROF = Path(sys.executable).parent / "tfprof"
JOB_COUNT = 8


@pytest.fixture
def busy_store(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A store with running jobs, and the process that writes to it until its input ends."""
    writer = subprocess.Popen(
        [sys.executable, ROOT / "tests/fakes/busy_store.py", tmp_path / "store", str(JOB_COUNT), "90"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    yield tmp_path / "store", writer
    writer.kill()
    writer.communicate()


def start(*words: object, **options: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [TFPROF, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )  # type: ignore[call-overload, no-any-return]


def test_follow_prints_every_step_once_until_the_job_ends(busy_store: tuple[Path, "subprocess.Popen[str]"]) -> None:
    store, writer = busy_store
    follow = start("follow", "last", "--all", "--each", "--json", "--store", store)
    time.sleep(5)  # the writer appends twice
    assert follow.poll() is None
    writer.communicate("")
    out, err = follow.communicate(timeout=60)
    events = [json.loads(line) for line in out.splitlines()]
    assert (follow.returncode, err) == (0, "")
    ends = [event for event in events if event["event"] == "end"]
    assert len(ends) == 2, "the processes of one launch"
    for end in ends:
        steps = [event["last"] for event in events if event["event"] == "steps" and event["job"] == end["job"]]
        assert (end["state"], end["status"]) == ("exited", 0)
        assert len(steps) == len(set(steps)) == end["steps"] > 0


def test_follow_uses_almost_no_cpu_time(busy_store: tuple[Path, "subprocess.Popen[str]"]) -> None:
    store, _ = busy_store
    follow = start("follow", "last", "--store", store)
    try:
        process = psutil.Process(follow.pid)
        time.sleep(6)  # until the command has started
        before = process.cpu_times()
        time.sleep(10)
        after = process.cpu_times()
        assert after.user + after.system - before.user - before.system < 0.5
    finally:
        follow.kill()
        follow.communicate()


def test_follow_ends_when_its_reader_closes_the_pipe_even_without_output(
    busy_store: tuple[Path, "subprocess.Popen[str]"],
) -> None:
    store, _ = busy_store
    uid_without_steps = f"{0x1000_0000_0000_0000 + (5 << 40):016x}"
    follow = start("follow", uid_without_steps, "--store", store)
    assert follow.stdout is not None
    assert follow.stdout.readline().startswith("job ")
    follow.stdout.close()
    assert follow.wait(30) == 0
    assert follow.stderr is not None
    assert follow.stderr.read() == ""
    follow.stderr.close()


def test_ctrl_c_ends_follow_silently(busy_store: tuple[Path, "subprocess.Popen[str]"]) -> None:
    store, _ = busy_store
    follow = start("follow", "last", "--store", store)
    assert follow.stdout is not None
    follow.stdout.readline()
    follow.send_signal(signal.SIGINT)
    assert follow.communicate(timeout=30)[1] == ""
    assert follow.returncode == -signal.SIGINT


@pytest.mark.parametrize(("key", "status"), [(b"q", 0), (b"\x03", -signal.SIGINT)])
def test_top_shows_the_idle_job_and_then_the_slow_one_first_and_restores_the_terminal(
    busy_store: tuple[Path, "subprocess.Popen[str]"], key: bytes, status: int
) -> None:
    store, _ = busy_store
    main, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "24"}
    top = subprocess.Popen(
        [TFPROF, "top", "--store", store], stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    try:
        output = read_until(main, b"train_6.py")
        assert 0 < output.index(b"train_4.py") < output.index(b"train_3.py") < output.index(b"train_6.py")
        os.write(main, key)
        read_until(main, b"\x1b[?1049l")
        assert top.wait(30) == status
    finally:
        top.kill()
        top.wait()
        os.close(main)


def read_until(terminal: int, text: bytes) -> bytes:
    """Read from a terminal until ``text`` is shown; return the output until then."""
    output = b""
    deadline = time.monotonic() + 90
    while text not in output:
        assert time.monotonic() < deadline, output[-2000:]
        if select.select([terminal], [], [], 1)[0]:
            output += os.read(terminal, 65536)
    return output
