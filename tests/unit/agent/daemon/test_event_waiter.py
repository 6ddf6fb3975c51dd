"""What ends a rest: an answer, the end of a process that is watched, or its time."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import zmq
from tfprof.agent import processes
from tfprof.agent.daemon.event_waiter import EventWaiter, Wakeup
from tfprof.agent.folder_watch import FolderWatch
from tfprof.agent.processes import Process

NOTHING = Wakeup(answered=False, ended=False, announced=False)
UID = 7


class Ends(NamedTuple):
    """A rest, and the other end of the socket that it looks at."""

    rest: EventWaiter
    ours: "zmq.Socket[bytes]"
    theirs: "zmq.Socket[bytes]"

    def wait(self, seconds: float) -> Wakeup:
        return self.rest.wait(seconds, listening=True)


@pytest.fixture
def sleeping() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def known(process: "subprocess.Popen[bytes]") -> Process:
    found = processes.process(process.pid)
    assert found is not None
    return found


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Ends]:
    with zmq.Context() as context, context.socket(zmq.PAIR) as ours, context.socket(zmq.PAIR) as theirs:
        ours.bind("inproc://rest")
        theirs.connect("inproc://rest")
        rest = EventWaiter(ours, FolderWatch(str(tmp_path)))
        yield Ends(rest, ours, theirs)
        rest.close()


def test_a_rest_ends_with_its_time(ends: Ends) -> None:
    began = time.monotonic()
    assert ends.wait(0.05) == NOTHING
    assert time.monotonic() - began >= 0.04
    assert ends.wait(-1.0) == NOTHING


@pytest.mark.parametrize("listening", [True, False])
def test_a_rest_without_anything_to_wake_for_takes_its_time_and_no_processor(ends: Ends, *, listening: bool) -> None:
    began, used = time.monotonic(), time.thread_time()
    for _ in range(4):
        assert ends.rest.wait(0.05, listening=listening) == NOTHING
    assert time.monotonic() - began >= 0.19
    assert time.thread_time() - used < 0.02


def test_an_answer_ends_it_as_long_as_it_is_not_taken(ends: Ends) -> None:
    ends.theirs.send(b"ack")
    assert ends.wait(30.0) == ends.wait(30.0) == Wakeup(answered=True, ended=False, announced=False)
    ends.ours.recv()
    assert ends.wait(0.0) == NOTHING


def test_an_answer_does_not_end_one_that_does_not_listen(ends: Ends) -> None:
    ends.theirs.send(b"ack")
    assert ends.rest.wait(0.05, listening=False) == NOTHING
    assert ends.wait(30.0).answered


@pytest.mark.parametrize("listening", [True, False])
def test_the_end_of_a_process_ends_it_once(ends: Ends, sleeping: "subprocess.Popen[bytes]", *, listening: bool) -> None:
    ends.rest.watch(UID, known(sleeping))
    assert ends.rest.watches(UID)
    assert ends.wait(0.0) == NOTHING
    sleeping.kill()
    assert ends.rest.wait(30.0, listening=listening) == Wakeup(answered=False, ended=True, announced=False)
    assert not ends.rest.watches(UID)
    assert ends.wait(0.0) == NOTHING
    ends.rest.forget(UID)


def test_both_at_once_are_both_told(ends: Ends, sleeping: "subprocess.Popen[bytes]") -> None:
    ends.rest.watch(UID, known(sleeping))
    sleeping.kill()
    sleeping.wait()
    ends.theirs.send(b"ack")
    assert ends.ours.poll(30_000)
    assert ends.wait(30.0) == Wakeup(answered=True, ended=True, announced=False)


def test_a_process_that_is_gone_or_forgotten_is_no_error(ends: Ends, sleeping: "subprocess.Popen[bytes]") -> None:
    found = known(sleeping)
    ends.rest.watch(UID, found)
    ends.rest.forget(UID)
    sleeping.kill()
    sleeping.wait()
    assert ends.wait(0.05) == NOTHING
    ends.rest.watch(UID, found)
    assert not ends.rest.watches(UID)
    assert ends.wait(0.0) == NOTHING
    ends.rest.forget(UID)


def test_another_process_with_its_number_is_not_watched(ends: Ends, sleeping: "subprocess.Popen[bytes]") -> None:
    ends.rest.watch(UID, Process(sleeping.pid, 1))
    assert not ends.rest.watches(UID)


@pytest.mark.parametrize("listening", [True, False])
def test_a_rest_ends_when_a_channel_is_announced(ends: Ends, tmp_path: Path, *, listening: bool) -> None:
    (tmp_path / "1-0123456789abcdef").touch()
    assert ends.rest.wait(20, listening=listening) == Wakeup(answered=False, ended=False, announced=True)
    assert ends.rest.wait(0.05, listening=listening) == NOTHING
