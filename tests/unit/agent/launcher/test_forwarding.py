"""Each signal reaches the job once, whether it was sent to the group or to the launcher alone."""

import os
import signal

import pytest
from tfprof.agent.launcher.forwarding import GRACE_S, SETTLE_S, Forwarding
from tfprof.agent.launcher.signal_receiver import Signal

TERM, USR1, REAL, CONT, TSTP = signal.SIGTERM, signal.SIGUSR1, signal.SIGRTMIN + 3, signal.SIGCONT, signal.SIGTSTP
#: Codes of signals: from the kernel for a terminal, and from a process.
TERMINAL, USER = 0x80, 0
JOB_PID = 2


class Bench:
    """A fake clock, a fake witness, and the forwarded signals."""

    def __init__(self) -> None:
        self.now = 100.0
        self.witness_signals: list[int] | None = []
        self.forwarded: list[int] = []
        self.forwarding = Forwarding(self._take_witness_signals, lambda pid: pid == JOB_PID)

    def _take_witness_signals(self) -> list[int] | None:
        signals, self.witness_signals = self.witness_signals, [] if self.witness_signals is not None else None
        return signals

    def signal_launcher(self, *infos: Signal) -> None:
        for info in infos:
            self.forwarding.add(info, self.now)

    def signal_witness(self, *numbers: int) -> None:
        self.witness_signals = [*(self.witness_signals or []), *numbers]

    def after(self, seconds: float) -> list[int]:
        """Advance the clock as the launcher does; return the signals forwarded meanwhile."""
        end, self.forwarded = self.now + seconds, []
        while self.forwarding.due_at <= end:
            self.now = max(self.now, self.forwarding.due_at)
            self.forwarded += [info.number for info in self.forwarding.take_ready(self.now)]
        self.now = end
        return self.forwarded


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_signal_to_the_launcher_alone_is_forwarded_after_a_moment(bench: Bench) -> None:
    bench.signal_launcher(Signal(TERM))
    assert bench.after(GRACE_S / 2) == []
    assert bench.after(GRACE_S) == [TERM]
    assert bench.after(1) == []


@pytest.mark.parametrize("code", [USER, TERMINAL])
def test_a_signal_that_the_witness_also_got_is_not_forwarded(bench: Bench, code: int) -> None:
    bench.signal_launcher(Signal(TERM, code))
    bench.signal_witness(TERM)
    assert bench.after(1) == []


def test_a_hangup_to_the_session_leader_alone_is_forwarded(bench: Bench) -> None:
    bench.signal_launcher(Signal(signal.SIGHUP, TERMINAL))
    assert bench.after(1) == [signal.SIGHUP]


@pytest.mark.parametrize("delay", [SETTLE_S / 2, SETTLE_S * 2, GRACE_S * 0.9])
def test_launcher_and_witness_may_be_signalled_one_after_the_other(bench: Bench, delay: float) -> None:
    bench.signal_launcher(Signal(TERM))
    assert bench.after(delay) == []
    bench.signal_witness(TERM)
    assert bench.after(1) == []
    bench.signal_witness(TERM)
    bench.signal_launcher(Signal(USR1), Signal(TERM))
    assert bench.after(1) == [USR1]


def test_each_of_several_real_time_signals_counts(bench: Bench) -> None:
    bench.signal_launcher(Signal(REAL), Signal(REAL), Signal(REAL))
    bench.signal_witness(REAL)
    assert bench.after(1) == [REAL, REAL]


def test_equal_standard_signals_at_once_count_once(bench: Bench) -> None:
    bench.signal_launcher(Signal(TERM))
    bench.after(SETTLE_S / 2)
    bench.signal_launcher(Signal(TERM))
    assert bench.after(1) == [TERM]


def test_signals_of_the_timeout_command_to_its_child_and_its_group_are_not_forwarded(bench: Bench) -> None:
    bench.signal_launcher(Signal(TERM), Signal(TERM), Signal(CONT))
    bench.signal_witness(TERM, CONT)
    assert bench.after(1) == []


def test_equal_signals_some_time_apart_each_count(bench: Bench) -> None:
    forwarded = []
    for _ in range(3):
        bench.signal_launcher(Signal(USR1))
        forwarded += bench.after(SETTLE_S * 2)
    assert forwarded + bench.after(1) == [USR1] * 3


def test_a_signal_to_the_group_and_a_later_one_to_the_launcher_each_count(bench: Bench) -> None:
    bench.signal_launcher(Signal(USR1))
    bench.signal_witness(USR1)
    assert bench.after(GRACE_S / 2) == []
    bench.signal_launcher(Signal(USR1))
    assert bench.after(1) == [USR1]


def test_a_signal_that_only_the_witness_got_is_forgotten_in_time(bench: Bench) -> None:
    bench.signal_launcher(Signal(USR1))
    bench.signal_witness(USR1, TERM)
    bench.after(2 * GRACE_S)
    bench.signal_launcher(Signal(USR1))
    assert bench.after(2 * GRACE_S) == [USR1]
    bench.signal_launcher(Signal(TERM))
    assert bench.after(1) == [TERM]


def test_a_signal_from_the_job_to_its_parent_is_not_forwarded(bench: Bench) -> None:
    bench.signal_launcher(Signal(TERM, pid=JOB_PID))
    assert bench.after(1) == []


def test_a_signal_from_the_job_to_its_group_cancels_no_other(bench: Bench) -> None:
    bench.signal_launcher(Signal(TERM, pid=JOB_PID))
    bench.signal_witness(TERM)
    bench.after(SETTLE_S * 2)
    bench.signal_launcher(Signal(TERM))
    assert bench.after(1) == [TERM]


def test_the_launchers_own_signals_are_not_forwarded(bench: Bench) -> None:
    bench.signal_launcher(Signal(signal.SIGPIPE, pid=os.getpid()), Signal(signal.SIGXCPU, TERMINAL))
    assert bench.after(1) == []


def test_a_stop_and_a_continue_cancel_each_other_as_in_the_kernel(bench: Bench) -> None:
    bench.signal_launcher(Signal(TSTP, TERMINAL))
    bench.signal_launcher(Signal(CONT))
    bench.signal_witness(CONT)  # the kernel discarded the stop of the witness
    assert bench.after(1) == []
    bench.signal_launcher(Signal(CONT))
    bench.signal_launcher(Signal(TSTP))
    assert bench.after(1) == [TSTP]


def test_without_a_witness_only_signals_from_processes_are_forwarded(bench: Bench) -> None:
    bench.witness_signals = None
    bench.signal_launcher(Signal(TERM), Signal(signal.SIGINT, TERMINAL))
    assert bench.after(1) == [TERM]


def test_a_signal_that_asks_for_the_end_is_remembered_unless_the_job_sent_it(bench: Bench) -> None:
    bench.forwarding.add(Signal(signal.SIGTERM, 0, JOB_PID), 0)
    bench.forwarding.add(Signal(signal.SIGUSR1, 0, 1), 1)
    assert bench.forwarding.end_request == 0
    bench.forwarding.add(Signal(signal.SIGINT, 0, 1), 2)
    bench.forwarding.add(Signal(signal.SIGTERM, 0, 1), 3)
    assert bench.forwarding.end_request == signal.SIGINT


def test_a_signal_that_the_launcher_ignores_does_not_ask_for_the_end(bench: Bench) -> None:
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        bench.forwarding.add(Signal(signal.SIGHUP, 0, 1), 0)
    finally:
        signal.signal(signal.SIGHUP, handler)
    assert bench.forwarding.end_request == 0
