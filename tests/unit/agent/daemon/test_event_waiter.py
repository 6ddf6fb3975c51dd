"""What ends a wait: an answer, the end of a watched process, an announcement, or the timeout."""

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

NO_EVENT = Wakeup(has_answer=False, has_process_end=False, has_announcement=False)
UID = 7


class Bench(NamedTuple):
    """A waiter, the socket that it polls, and the peer of that socket."""

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


def process_of(child: "subprocess.Popen[bytes]") -> Process:
    process = processes.process(child.pid)
    assert process is not None
    return process


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with (
        zmq.Context() as context,
        context.socket(zmq.PAIR) as agent_socket,
        context.socket(zmq.PAIR) as collector_socket,
    ):
        agent_socket.bind("inproc://waiter")
        collector_socket.connect("inproc://waiter")
        waiter = EventWaiter(agent_socket, FolderWatch(str(tmp_path)))
        yield Bench(waiter, agent_socket, collector_socket)
        waiter.close()


def test_a_wait_ends_after_its_time(bench: Bench) -> None:
    start = time.monotonic()
    assert bench.wait(0.05) == NO_EVENT
    assert time.monotonic() - start >= 0.04
    assert bench.wait(-1.0) == NO_EVENT


@pytest.mark.parametrize("listening", [True, False])
def test_a_wait_without_an_event_takes_its_time_and_no_processor_time(bench: Bench, *, listening: bool) -> None:
    start, cpu_start = time.monotonic(), time.thread_time()
    for _ in range(4):
        assert bench.waiter.wait(0.05, listening=listening) == NO_EVENT
    assert time.monotonic() - start >= 0.19
    assert time.thread_time() - cpu_start < 0.02


def test_an_unread_answer_ends_a_wait(bench: Bench) -> None:
    bench.collector_socket.send(b"ack")
    assert (
        bench.wait(30.0) == bench.wait(30.0) == Wakeup(has_answer=True, has_process_end=False, has_announcement=False)
    )
    bench.agent_socket.recv()
    assert bench.wait(0.0) == NO_EVENT


def test_an_answer_does_not_end_a_wait_without_listening(bench: Bench) -> None:
    bench.collector_socket.send(b"ack")
    assert bench.waiter.wait(0.05, listening=False) == NO_EVENT
    assert bench.wait(30.0).has_answer


@pytest.mark.parametrize("listening", [True, False])
def test_the_end_of_a_process_ends_one_wait(
    bench: Bench, sleeper: "subprocess.Popen[bytes]", *, listening: bool
) -> None:
    bench.waiter.watch(UID, process_of(sleeper))
    assert bench.waiter.watches(UID)
    assert bench.wait(0.0) == NO_EVENT
    sleeper.kill()
    assert bench.waiter.wait(30.0, listening=listening) == Wakeup(
        has_answer=False, has_process_end=True, has_announcement=False
    )
    assert not bench.waiter.watches(UID)
    assert bench.wait(0.0) == NO_EVENT
    bench.waiter.forget(UID)


def test_two_events_at_once_are_both_reported(bench: Bench, sleeper: "subprocess.Popen[bytes]") -> None:
    bench.waiter.watch(UID, process_of(sleeper))
    sleeper.kill()
    sleeper.wait()
    bench.collector_socket.send(b"ack")
    assert bench.agent_socket.poll(30_000)
    assert bench.wait(30.0) == Wakeup(has_answer=True, has_process_end=True, has_announcement=False)


def test_a_process_that_is_gone_or_forgotten_is_no_error(bench: Bench, sleeper: "subprocess.Popen[bytes]") -> None:
    process = process_of(sleeper)
    bench.waiter.watch(UID, process)
    bench.waiter.forget(UID)
    sleeper.kill()
    sleeper.wait()
    assert bench.wait(0.05) == NO_EVENT
    bench.waiter.watch(UID, process)
    assert not bench.waiter.watches(UID)
    assert bench.wait(0.0) == NO_EVENT
    bench.waiter.forget(UID)


def test_another_process_with_the_same_pid_is_not_watched(bench: Bench, sleeper: "subprocess.Popen[bytes]") -> None:
    bench.waiter.watch(UID, Process(sleeper.pid, 1))
    assert not bench.waiter.watches(UID)


@pytest.mark.parametrize("listening", [True, False])
def test_an_announcement_ends_a_wait(bench: Bench, tmp_path: Path, *, listening: bool) -> None:
    (tmp_path / "1-0123456789abcdef").touch()
    assert bench.waiter.wait(20, listening=listening) == Wakeup(
        has_answer=False, has_process_end=False, has_announcement=True
    )
    assert bench.waiter.wait(0.05, listening=listening) == NO_EVENT
