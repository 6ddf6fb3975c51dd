"""What ends a rest: an answer, the end of a process that is watched, or its time."""

import os
import subprocess
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import zmq
from tfprof.agent.rest import Rest, Woken

NOTHING = Woken(answered=False, ended=False)
UID = 7


class Ends(NamedTuple):
    """A rest, and the other end of the socket that it looks at."""

    rest: Rest
    ours: "zmq.Socket[bytes]"
    theirs: "zmq.Socket[bytes]"


@pytest.fixture
def ends() -> Iterator[Ends]:
    with zmq.Context() as context, context.socket(zmq.PAIR) as ours, context.socket(zmq.PAIR) as theirs:
        ours.bind("inproc://rest")
        theirs.connect("inproc://rest")
        rest = Rest(ours)
        yield Ends(rest, ours, theirs)
        rest.close()


def test_a_rest_ends_with_its_time(ends: Ends) -> None:
    began = time.monotonic()
    assert ends.rest.wait(0.05) == NOTHING
    assert time.monotonic() - began >= 0.04
    assert ends.rest.wait(-1.0) == NOTHING


def test_an_answer_ends_it_as_long_as_it_is_not_taken(ends: Ends) -> None:
    ends.theirs.send(b"ack")
    assert ends.rest.wait(30.0) == ends.rest.wait(30.0) == Woken(answered=True, ended=False)
    ends.ours.recv()
    assert ends.rest.wait(0.0) == NOTHING


def test_the_end_of_a_process_ends_it_once(ends: Ends) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        ends.rest.watch(UID, process.pid)
        assert ends.rest.wait(0.0) == NOTHING
        process.kill()
        assert ends.rest.wait(30.0) == Woken(answered=False, ended=True)
        assert ends.rest.wait(0.0) == NOTHING
    ends.rest.forget(UID)


def test_both_at_once_are_both_told(ends: Ends) -> None:
    with subprocess.Popen(["true"]) as process:
        ends.rest.watch(UID, process.pid)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        ends.theirs.send(b"ack")
        time.sleep(0.05)
        assert ends.rest.wait(30.0) == Woken(answered=True, ended=True)


def test_a_process_that_is_gone_or_forgotten_is_no_error(ends: Ends) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        ends.rest.watch(UID, process.pid)
        ends.rest.forget(UID)
        process.kill()
    assert ends.rest.wait(0.05) == NOTHING
    ends.rest.watch(UID, process.pid)
    assert ends.rest.wait(0.0) == NOTHING
    ends.rest.forget(UID)
