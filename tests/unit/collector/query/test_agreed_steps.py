"""The step from which on all workers of a distributed job can trace.

Tests collector/summaries/order_results.py.
"""

from typing import Any

import pytest
from tfprof.collector.query.order_targets import AHEAD_S, Agreement, Progress, first_common, progress_in
from tfprof.collector.summaries.order_results import JobAnswers
from tfprof.collector.summaries.step_records import TimedSteps
from tfprof.formats import orders
from tfprof.formats.orders import OrderAnswer

MS = 1_000_000


def timed(ordinal: int, start_ms: float, steps: int = 1) -> TimedSteps:
    return TimedSteps(ordinal, steps, round(start_ms * MS), MS, True)


@pytest.mark.parametrize("steps", [[], [timed(1, 0)]])
def test_a_pace_needs_two_steps(steps: list[TimedSteps]) -> None:
    assert progress_in(steps) is None


def test_a_pause_does_not_change_the_pace() -> None:
    steps = [timed(number, 100 * number + (60_000 if number > 5 else 0)) for number in range(1, 11)]
    assert progress_in(steps) == Progress(10, 100 * MS)


def test_steps_that_were_timed_together_count_one_by_one() -> None:
    assert progress_in([timed(1, 0, 1000), timed(1001, 500, 1000), timed(2001, 1000, 500)]) == Progress(2500, 0.5 * MS)


def test_the_agreed_step_is_ahead_of_the_fastest_worker() -> None:
    behind, ahead, slow = Progress(90, 10 * MS), Progress(100, 10 * MS), Progress(100, 20_000 * MS)
    assert first_common([behind, ahead]) == 100 + AHEAD_S * 100 + 1
    assert first_common([slow]) == 102
    assert first_common([Progress(7, 0.0)]) > 7


def test_workers_that_had_passed_the_agreed_step_are_named() -> None:
    jobs: Any = ["in time", "late", "refused"]
    answers = [
        OrderAnswer(1, orders.OBEYED, kind="run", step=100),
        OrderAnswer(2, orders.OBEYED, kind="run", step=101),
        OrderAnswer(3, orders.REFUSED, "job-gone", "gone"),
    ]
    given = [JobAnswers(job, (answer,)) for job, answer in zip(jobs, answers, strict=True)]
    assert Agreement(100, (), ()).passed_by(given) == ["late"]
