"""Each signal reaches the job once, whoever else it was sent to."""

import os
import signal

import pytest
from tfprof.agent.launcher.forwarding import GRACE_S, SETTLE_S, Forwarding
from tfprof.agent.launcher.inbox import Signal

TERM, USR1, REAL, CONT, TSTP = signal.SIGTERM, signal.SIGUSR1, signal.SIGRTMIN + 3, signal.SIGCONT, signal.SIGTSTP
TERMINAL, USER = 0x80, 0
OF_JOB = 2


class Bench:
    """A clock, a witness, and what was passed on when."""

    def __init__(self) -> None:
        self.now = 100.0
        self.group: list[int] | None = []
        self.passed: list[int] = []
        self.forwarding = Forwarding(self._witness, lambda pid: pid == OF_JOB)

    def _witness(self) -> list[int] | None:
        heard, self.group = self.group, [] if self.group is not None else None
        return heard

    def launcher(self, *infos: Signal) -> None:
        for info in infos:
            self.forwarding.add(info, self.now)

    def witness(self, *numbers: int) -> None:
        self.group = [*(self.group or []), *numbers]

    def after(self, seconds: float) -> list[int]:
        """Let time pass as the launcher does, from one moment of interest to the next; return what was passed on."""
        end, self.passed = self.now + seconds, []
        while self.forwarding.due <= end:
            self.now = max(self.now, self.forwarding.due)
            self.passed += [info.number for info in self.forwarding.ready(self.now)]
        self.now = end
        return self.passed


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_what_reached_the_launcher_alone_is_passed_on_after_a_moment(bench: Bench) -> None:
    bench.launcher(Signal(TERM))
    assert bench.after(GRACE_S / 2) == []
    assert bench.after(GRACE_S) == [TERM]
    assert bench.after(1) == []


@pytest.mark.parametrize("code", [USER, TERMINAL])
def test_what_the_witness_heard_too_is_not(bench: Bench, code: int) -> None:
    bench.launcher(Signal(TERM, code))
    bench.witness(TERM)
    assert bench.after(1) == []


def test_a_hangup_that_reached_the_leader_of_a_session_alone_is_passed_on(bench: Bench) -> None:
    bench.launcher(Signal(signal.SIGHUP, TERMINAL))
    assert bench.after(1) == [signal.SIGHUP]


@pytest.mark.parametrize("late", [SETTLE_S / 2, SETTLE_S * 2, GRACE_S * 0.9])
def test_who_signals_one_process_after_the_other_may_take_a_moment(bench: Bench, late: float) -> None:
    bench.launcher(Signal(TERM))
    assert bench.after(late) == []
    bench.witness(TERM)
    assert bench.after(1) == []
    bench.witness(TERM)
    bench.launcher(Signal(USR1), Signal(TERM))
    assert bench.after(1) == [USR1]


def test_each_of_several_is_counted(bench: Bench) -> None:
    bench.launcher(Signal(REAL), Signal(REAL), Signal(REAL))
    bench.witness(REAL)
    assert bench.after(1) == [REAL, REAL]


def test_a_number_that_comes_twice_at_once_is_one_signal(bench: Bench) -> None:
    bench.launcher(Signal(TERM))
    bench.after(SETTLE_S / 2)
    bench.launcher(Signal(TERM))
    assert bench.after(1) == [TERM]


def test_timeout_signals_its_child_and_then_the_group(bench: Bench) -> None:
    bench.launcher(Signal(TERM), Signal(TERM), Signal(CONT))
    bench.witness(TERM, CONT)
    assert bench.after(1) == []


def test_signals_a_while_apart_are_two(bench: Bench) -> None:
    passed = []
    for _ in range(3):
        bench.launcher(Signal(USR1))
        passed += bench.after(SETTLE_S * 2)
    assert passed + bench.after(1) == [USR1] * 3


def test_one_to_the_group_and_one_to_the_launcher_are_two(bench: Bench) -> None:
    bench.launcher(Signal(USR1))
    bench.witness(USR1)
    assert bench.after(GRACE_S / 2) == []
    bench.launcher(Signal(USR1))
    assert bench.after(1) == [USR1]


def test_what_only_the_witness_heard_is_forgotten_in_time(bench: Bench) -> None:
    bench.launcher(Signal(USR1))
    bench.witness(USR1, TERM)
    bench.after(2 * GRACE_S)
    bench.launcher(Signal(USR1))
    assert bench.after(2 * GRACE_S) == [USR1]
    bench.launcher(Signal(TERM))
    assert bench.after(1) == [TERM]


def test_what_the_job_sends_its_parent_does_not_come_back(bench: Bench) -> None:
    bench.launcher(Signal(TERM, pid=OF_JOB))
    assert bench.after(1) == []


def test_what_the_job_sends_its_group_takes_nothing_off_from_others(bench: Bench) -> None:
    bench.launcher(Signal(TERM, pid=OF_JOB))
    bench.witness(TERM)
    bench.after(SETTLE_S * 2)
    bench.launcher(Signal(TERM))
    assert bench.after(1) == [TERM]


def test_the_launchers_own_signals_are_nobodys(bench: Bench) -> None:
    bench.launcher(Signal(signal.SIGPIPE, pid=os.getpid()), Signal(signal.SIGXCPU, TERMINAL))
    assert bench.after(1) == []


def test_a_stop_and_a_going_on_undo_each_other_as_in_the_system(bench: Bench) -> None:
    bench.launcher(Signal(TSTP, TERMINAL))
    bench.launcher(Signal(CONT))
    bench.witness(CONT)  # the stop was forgotten there
    assert bench.after(1) == []
    bench.launcher(Signal(CONT))
    bench.launcher(Signal(TSTP))
    assert bench.after(1) == [TSTP]


def test_without_a_witness_terminals_mean_the_group_and_people_one_process(bench: Bench) -> None:
    bench.group = None
    bench.launcher(Signal(TERM), Signal(signal.SIGINT, TERMINAL))
    assert bench.after(1) == [TERM]
