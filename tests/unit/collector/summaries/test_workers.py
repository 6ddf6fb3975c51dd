"""Workers on one clock: known offsets are found, and planted stragglers are named."""

import random

import pytest
from tfprof.collector.summaries.workers import (
    COLLECTIVES,
    NOTHING,
    PACE,
    STARTS,
    Clock,
    Comparison,
    Moments,
    WorkerSteps,
    align,
    compare,
)

MS = 1_000_000


def steps(late_ms: float = 0.0, offset_ns: int = 0, numbers: range = range(20)) -> dict[int, Moments]:
    """Return steps that start late, and end with those of all workers, on a clock that is off."""
    return {
        number: Moments(number * 100 * MS + int(late_ms * MS) + offset_ns, number * 100 * MS + 80 * MS + offset_ns)
        for number in numbers
    }


@pytest.mark.parametrize("offset_ns", [0, 3_600_000_000_000, -3_600_000_000_000, 1_234_567])
def test_a_known_offset_is_found_within_a_millisecond(offset_ns: int) -> None:
    noise = random.Random(1)
    reference = {step: step * 100 * MS for step in range(50)}
    ends = {step: end + offset_ns + noise.randrange(-MS // 2, MS // 2) for step, end in reference.items()}
    ends[7] += 5_000 * MS
    clock = align(reference, ends)
    assert clock is not None
    assert abs(clock.offset_ns + offset_ns) <= clock.error_ns <= MS


def test_two_common_steps_align_nothing() -> None:
    assert align({1: 10, 2: 20, 3: 30}, {2: 20, 3: 30, 4: 40}) is None


def test_who_starts_last_is_waited_for() -> None:
    source, (first, second) = compare([WorkerSteps("a", steps(), None), WorkerSteps("a", steps(40), None)])
    assert source == STARTS
    assert (first.behind_ns, first.last) == (0, 0)
    assert (second.behind_ns, second.last, second.common) == (40 * MS, 20, 20)


def test_who_waits_least_at_collectives_is_waited_for() -> None:
    source, (first, second) = compare([WorkerSteps("a", steps(), 1.0 * MS), WorkerSteps("a", steps(), 31.0 * MS)])
    assert source == COLLECTIVES
    assert (first.behind_ns, second.behind_ns) == (30 * MS, 0)


def test_workers_of_two_hosts_are_compared_on_one_clock() -> None:
    workers = [WorkerSteps("a", steps(), 30.0 * MS), WorkerSteps("b", steps(30, 3_600_000 * MS), 1.0 * MS)]
    _, (_, second) = compare(workers)
    assert second.clock is not None
    assert second.clock.offset_ns == -3_600_000 * MS
    assert (second.late_ns, second.last) == (30 * MS, 20)


def test_clocks_of_hosts_without_collectives_are_not_compared() -> None:
    source, (first, second) = compare([WorkerSteps("a", steps(), None), WorkerSteps("b", steps(30), None)])
    assert source == NOTHING
    assert first.behind_ns is None
    assert (second.clock, second.late_ns, second.behind_ns) == (None, None, None)


@pytest.mark.parametrize("others", [{}, steps(numbers=range(90, 99))])
def test_without_common_steps_nobody_is_named(others: dict[int, Moments]) -> None:
    source, compared = compare([WorkerSteps("a", steps(), None), WorkerSteps("a", others, None)])
    assert source == NOTHING
    assert [(worker.behind_ns, worker.last) for worker in compared] == [(None, 0), (None, 0)]


def paced(period_ms: float, late_ms: float = 0.0) -> WorkerSteps:
    """Return a worker with steps of its own pace."""
    return WorkerSteps("a", steps(late_ms), None, period_ms * MS)


def test_parameter_servers_are_not_compared() -> None:
    server = WorkerSteps("a", {}, None)
    source, (first, second, third) = compare([server, paced(100), paced(100, 40)])
    assert source == STARTS
    assert (second.behind_ns, third.behind_ns, third.common) == (0, 40 * MS, 20)
    assert first == Comparison(Clock(0.0, 0.0), 0, None, 0, None)


@pytest.mark.parametrize("second", [paced(126), paced(100, 101)])
def test_workers_with_different_periods_or_a_delay_of_a_period_do_not_wait_for_each_other(second: WorkerSteps) -> None:
    source, compared = compare([paced(100), second])
    assert source == PACE
    assert [(worker.behind_ns, worker.late_ns, worker.common) for worker in compared] == [(None, None, 0)] * 2


def test_workers_that_wait_for_parameters_do_not_wait_for_each_other() -> None:
    slow = paced(300)._replace(waits_ns=5.0 * MS)
    assert compare([paced(100)._replace(waits_ns=9.0 * MS), slow])[0] == PACE
