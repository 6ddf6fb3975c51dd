"""Events that end a wait: an answer, the end of a watched process, an announcement, the timeout."""

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

NOTHING = Wakeup(has_answer=False, has_process_end=False, has_announcement=False)
UID = 7


class Ends(NamedTuple):
    """A waiter, and both ends of the socket that it polls."""

    waiter: EventWaiter
    agent_socket: "zmq.Socket[bytes]"
    collector_socket: "zmq.Socket[bytes]"

    def wait(self, seconds: float) -> Wakeup:
        return self.waiter.wait(seconds, listening=True)


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def process_of(process: "subprocess.Popen[bytes]") -> Process:
    record = processes.process(process.pid)
    assert record is not None
    return record


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Ends]:
    with (
        zmq.Context() as context,
        context.socket(zmq.PAIR) as agent_socket,
        context.socket(zmq.PAIR) as collector_socket,
    ):
        agent_socket.bind("inproc://waiter")
        collector_socket.connect("inproc://waiter")
        waiter = EventWaiter(agent_socket, FolderWatch(str(tmp_path)))
        yield Ends(waiter, agent_socket, collector_socket)
        waiter.close()


def test_a_wait_ends_after_its_time(ends: Ends) -> None:
    began = time.monotonic()
    assert ends.wait(0.05) == NOTHING
    assert time.monotonic() - began >= 0.04
    assert ends.wait(-1.0) == NOTHING


@pytest.mark.parametrize("listening", [True, False])
def test_a_wait_without_descriptors_takes_its_time_and_no_processor(ends: Ends, *, listening: bool) -> None:
    began, cpu_before = time.monotonic(), time.thread_time()
    for _ in range(4):
        assert ends.waiter.wait(0.05, listening=listening) == NOTHING
    assert time.monotonic() - began >= 0.19
    assert time.thread_time() - cpu_before < 0.02


def test_an_unread_answer_ends_a_wait(ends: Ends) -> None:
    ends.collector_socket.send(b"ack")
    assert ends.wait(30.0) == ends.wait(30.0) == Wakeup(has_answer=True, has_process_end=False, has_announcement=False)
    ends.agent_socket.recv()
    assert ends.wait(0.0) == NOTHING


def test_an_answer_does_not_end_a_wait_without_listening(ends: Ends) -> None:
    ends.collector_socket.send(b"ack")
    assert ends.waiter.wait(0.05, listening=False) == NOTHING
    assert ends.wait(30.0).has_answer


@pytest.mark.parametrize("listening", [True, False])
def test_the_end_of_a_process_ends_one_wait(ends: Ends, sleeper: "subprocess.Popen[bytes]", *, listening: bool) -> None:
    ends.waiter.watch(UID, process_of(sleeper))
    assert ends.waiter.watches(UID)
    assert ends.wait(0.0) == NOTHING
    sleeper.kill()
    assert ends.waiter.wait(30.0, listening=listening) == Wakeup(
        has_answer=False, has_process_end=True, has_announcement=False
    )
    assert not ends.waiter.watches(UID)
    assert ends.wait(0.0) == NOTHING
    ends.waiter.forget(UID)


def test_two_events_at_once_are_both_reported(ends: Ends, sleeper: "subprocess.Popen[bytes]") -> None:
    ends.waiter.watch(UID, process_of(sleeper))
    sleeper.kill()
    sleeper.wait()
    ends.collector_socket.send(b"ack")
    assert ends.agent_socket.poll(30_000)
    assert ends.wait(30.0) == Wakeup(has_answer=True, has_process_end=True, has_announcement=False)


def test_a_process_that_is_gone_or_forgotten_is_no_error(ends: Ends, sleeper: "subprocess.Popen[bytes]") -> None:
    record = process_of(sleeper)
    ends.waiter.watch(UID, record)
    ends.waiter.forget(UID)
    sleeper.kill()
    sleeper.wait()
    assert ends.wait(0.05) == NOTHING
    ends.waiter.watch(UID, record)
    assert not ends.waiter.watches(UID)
    assert ends.wait(0.0) == NOTHING
    ends.waiter.forget(UID)


def test_another_process_with_the_same_pid_is_not_watched(ends: Ends, sleeper: "subprocess.Popen[bytes]") -> None:
    ends.waiter.watch(UID, Process(sleeper.pid, 1))
    assert not ends.waiter.watches(UID)


@pytest.mark.parametrize("listening", [True, False])
def test_an_announcement_ends_a_wait(ends: Ends, tmp_path: Path, *, listening: bool) -> None:
    (tmp_path / "1-0123456789abcdef").touch()
    assert ends.waiter.wait(20, listening=listening) == Wakeup(
        has_answer=False, has_process_end=False, has_announcement=True
    )
    assert ends.waiter.wait(0.05, listening=listening) == NOTHING
