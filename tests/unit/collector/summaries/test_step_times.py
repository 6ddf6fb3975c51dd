"""Step times of a kind over a whole job, and the pace of its latest steps."""

from dataclasses import replace
from itertools import accumulate

import pytest
from fakes.made_store import MS, SECOND, START_NS, rows, span
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.summaries.jobs import job_row
from tfprof.collector.summaries.step_times import PaceKeeper, SpanRow, curve, median_step, step_times_of
from tfprof.formats import layout

FUNCTIONS = {1: "train_step", 2: "eval_step"}
ROW = job_row(JobInfo(uid=1), "0001", 0)


def test_the_median_step_covers_all_calls_of_the_kind() -> None:
    spans = [span(layout.TRAIN, number, number, 1, key=1) for number in range(1, 8)]
    spans += [span(layout.TRAIN, number, number, 99, key=2) for number in range(8, 12)]
    row = replace(ROW, step_kind="train")
    times = median_step(row, step_times_of(row, rows("spans", spans), {}), ["train"])
    assert times is not None
    assert (times.kind, times.spread.p50_ns, times.count) == ("train", MS, 11)


@pytest.mark.parametrize(
    ("kinds", "name"),
    [(["function:train_step"], "function:train_step"), ([], "function:eval_step"), (["run"], "function:eval_step")],
)
def test_the_median_step_is_of_the_function_whose_ops_are_shown(kinds: list[str], name: str) -> None:
    spans = [span(layout.FUNCTION, number, number, 9 if key == 2 else 1, key=key) for number, key in enumerate((1, 2))]
    row = replace(ROW, step_kind="function")
    times = median_step(row, step_times_of(row, rows("spans", spans), FUNCTIONS), kinds)
    assert times is not None
    assert times.kind == name


def test_of_many_functions_those_with_the_most_time_have_step_times() -> None:
    spans = [span(layout.FUNCTION, number, number, 1, key=2 + number % 20) for number in range(200)]
    spans += [span(layout.FUNCTION, 200, 300, 9000, key=1), span(layout.RUN, 1, 9999, 0.1)]
    kinds = [times.kind for times in step_times_of(replace(ROW, step_kind="function"), rows("spans", spans), FUNCTIONS)]
    assert len(kinds) == 17
    assert (kinds[0], kinds[-1]) == ("function:train_step", "run")


def test_there_is_no_median_step_if_every_step_was_traced() -> None:
    spans = rows("spans", [span(layout.TRAIN, 1, 1, 1, flags=layout.FLAG_TRACED), span(layout.RUN, 2, 2, 1)])
    row = replace(ROW, step_kind="train")
    assert median_step(row, step_times_of(row, spans, {}), ["train"]) is None


def keeper_of(*stretches: tuple[int, int, int]) -> tuple[PaceKeeper, int]:
    """Return a keeper and the end of the last step.

    ``stretches``: (number of steps, ms per step, ms between starts).
    """
    keeper, now = PaceKeeper(), START_NS
    for number, step_ms, interval_ms in stretches:
        keeper.add(SpanRow(now + n * interval_ms * MS, step_ms * MS, 1, 0) for n in range(number))
        now += number * interval_ms * MS
    return keeper, now - stretches[-1][2] * MS + stretches[-1][1] * MS


def test_a_steady_job_has_its_rate_and_no_change() -> None:
    keeper, now = keeper_of((2000, 40, 50))
    pace = keeper.pace(8).at(now)
    assert (pace.step_ns, pace.usual_ns, pace.change) == (40 * MS, 40 * MS, 1.0)
    assert abs(pace.per_s - 20) < 0.5
    assert pace.trend == (40.0 * MS,) * 8


def test_sampled_steps_have_the_rate_of_their_ends() -> None:
    """Of 256 steps in 12.8 s, only the last one was timed."""
    keeper = PaceKeeper()
    for end_ms in range(12_800, 20 * 12_800, 12_800):
        start_ns = START_NS + end_ms * MS - 256 * MS // 20
        keeper.add([SpanRow(start_ns, 256 * MS // 20, 256, layout.FLAG_SAMPLED)])
        assert end_ms == 12_800 or keeper.pace(8).per_s == 20


def test_short_steps_that_share_a_row_all_count_in_the_median() -> None:
    keeper, times_ms = PaceKeeper(), [(0.9, 6), (2, 1), (2, 1)] * 1000
    starts_ms = accumulate((ms for ms, _ in times_ms), initial=0.0)
    rows_of_steps = zip(starts_ms, times_ms, strict=False)
    keeper.add(SpanRow(START_NS + int(at * MS), int(ms * MS), steps, 0) for at, (ms, steps) in rows_of_steps)
    assert keeper.pace(8).step_ns == 0.15 * MS


def test_a_slowdown_shows_within_seconds() -> None:
    keeper, now = keeper_of((2000, 40, 50), (60, 160, 200))
    pace = keeper.pace(8).at(now)
    assert pace.change == 4.0
    assert pace.trend[-1] == 160 * MS
    assert pace.trend[0] == 40 * MS


def test_long_steps_are_compared_like_short_ones() -> None:
    keeper, now = keeper_of((10, 30_000, 31_000), (3, 90_000, 91_000))
    pace = keeper.pace(8).at(now + 20 * SECOND)
    assert pace.change == 3.0
    assert pace.per_s > 0


def test_a_job_without_steps_for_long_has_a_rate_of_0() -> None:
    keeper, now = keeper_of((100, 40, 50))
    assert keeper.pace(8).at(now + 9 * SECOND).per_s > 0
    assert keeper.pace(8).at(now + 11 * SECOND).per_s == 0.0


def test_at_first_no_usual_time_is_known() -> None:
    assert PaceKeeper().pace(8).at(START_NS).per_s is None
    keeper, now = keeper_of((10, 40, 50))
    pace = keeper.pace(8).at(now)
    assert (pace.step_ns, pace.usual_ns, pace.change) == (40 * MS, None, None)


def test_traced_failed_and_setup_steps_do_not_count() -> None:
    keeper, now = keeper_of((2000, 40, 50))
    for flag in (layout.FLAG_TRACED, layout.FLAG_FAILED, layout.FLAG_SETUP):
        keeper.add(SpanRow(now + n * 50 * MS, 900 * MS, 1, flag) for n in range(400))
    assert keeper.pace(8).at(now).change == 1.0


def test_rows_may_be_out_of_order() -> None:
    keeper, now = keeper_of((200, 40, 50))
    keeper.add([SpanRow(START_NS - SECOND, 40 * MS, 1, 0), SpanRow(START_NS + SECOND, 40 * MS, 1, 0)])
    assert keeper.pace(8).at(now).step_ns == 40 * MS
    assert keeper.last_ns == now


def test_a_curve_divides_the_time_into_equal_parts() -> None:
    table = rows("spans", [span(layout.BATCH, n, n * 10, 5 if n < 50 else 8) for n in range(100)])
    assert curve(table, 2) == [5.0 * MS, 8.0 * MS]
    assert curve(table.slice(0, 0), 4) == []
