"""Step times: percentiles of untraced steps, and separately of traced ones.

Tests collector/summaries/series.py.
"""

from collections.abc import Sequence

import pytest
from fakes.made_store import MS, START_NS, rows, span
from tfprof.collector.render.steps_text import cost_text
from tfprof.collector.summaries.series import spread
from tfprof.collector.summaries.steps import StepCost, call_label, steps
from tfprof.formats import layout

RUN, BATCH = layout.RUN, layout.BATCH


def test_percentiles_cover_single_steps() -> None:
    result = spread(rows("spans", [span(RUN, at, at, at) for at in range(1, 102)]))
    assert result is not None
    assert [result.p50_ns, result.p90_ns, result.p99_ns] == [51 * MS, 91 * MS, 100 * MS]
    assert (result.count, result.min_ns, result.max_ns, result.mean_ns) == (101, MS, 101 * MS, 51 * MS)


@pytest.mark.parametrize(
    ("number", "percentiles"),
    [(1, [1, 1, 1]), (2, [1, 2, 2]), (3, [2, 3, 3]), (9, [5, 9, 9]), (10, [5, 9, 10]), (11, [6, 10, 11])],
)
def test_high_percentiles_of_few_times_are_the_longest(number: int, percentiles: list[int]) -> None:
    result = spread(rows("spans", [span(RUN, at, at, at) for at in range(1, number + 1)]))
    assert result is not None
    assert [result.p50_ns, result.p90_ns, result.p99_ns] == [at * MS for at in percentiles]


def test_a_row_of_many_steps_counts_as_many_steps() -> None:
    many_steps = span(RUN, 1, 0, 1, count=9, min_ns=5, max_ns=MS)
    result = spread(rows("spans", [many_steps, span(RUN, 10, 1, 50)]))
    assert result is not None
    assert (result.count, result.min_ns, result.max_ns) == (10, 5, 50 * MS)
    assert result.p50_ns == pytest.approx(MS / 9)
    assert result.mean_ns == pytest.approx(5.1 * MS)


def test_times_that_a_float_does_not_hold_exactly_have_a_spread() -> None:
    result = spread(rows("spans", [span(RUN, 1, 1, 1, total_ns=2**63 - 1)]))
    assert result is not None
    assert (result.p50_ns, result.total_ns) == (float(2**63), 2**63 - 1)


def test_without_spans_there_is_no_spread() -> None:
    assert spread(rows("spans", [])) is None


def test_traced_failed_and_setup_steps_are_separate() -> None:
    flags = [0, 0, layout.FLAG_TRACED, layout.FLAG_FAILED, layout.FLAG_SETUP | layout.FLAG_TRACED]
    (group,) = steps(rows("spans", [span(RUN, at, at, 10 + at, flags=flag) for at, flag in enumerate(flags)]), 0).groups
    assert group.untraced is not None
    assert group.traced is not None
    assert (group.untraced.count, group.untraced.max_ns) == (2, 11 * MS)
    assert (group.traced.count, group.traced.p50_ns) == (1, 12 * MS)
    assert (group.failed, group.setup, group.count) == (1, 1, 5)


def test_a_kind_has_the_steps_of_all_its_calls_and_each_function_is_a_kind() -> None:
    spans = [span(RUN, number, number, 1, key=1 << 24) for number in (1, 2, 3)]
    spans += [span(RUN, number, number, 9, key=2 << 24) for number in (4, 5)]
    spans += [span(layout.FUNCTION, number, number, 2, key=number) for number in (6, 7)]
    spans.append(span(BATCH, 8, 8, 4))
    result = steps(rows("spans", spans), 0)
    assert [(group.kind, group.call, group.count) for group in result.kinds] == [
        ("batch", "", 1),
        ("run", "all calls", 5),
        ("function", "#6", 1),
        ("function", "#7", 1),
    ]
    assert result.kinds[1].untraced is not None
    assert result.kinds[1].untraced.p50_ns == MS
    assert len(result.groups) == 5


def _cost(times: Sequence[tuple[float, bool]]) -> StepCost | None:
    """Return the cost of tracing.

    ``times``: the time of each step in ms, and whether the step is traced.
    """
    spans = [
        span(RUN, at, 100 * at, ms, flags=layout.FLAG_TRACED if traced else 0) for at, (ms, traced) in enumerate(times)
    ]
    (group,) = steps(rows("spans", spans), 0).groups
    return group.cost


def test_a_traced_step_is_compared_with_its_neighbors() -> None:
    slow_times = [(1000.0, False), (1000.0, False), (1100.0, True)] * 5
    result = _cost([*slow_times, *[(1.0, False)] * 100])
    assert result is not None
    assert (result.ns, result.share, result.pairs) == (100 * MS, pytest.approx(0.1), 5)


@pytest.mark.parametrize(
    "times",
    [
        [(1.0, False)],
        [(5.0, True)] * 50,
        [(5.0, True), *[(1.0, False)] * 99],
        [*[(5.0, True)] * 50, *[(1.0, False)] * 2],
    ],
    ids=["none-traced", "all-traced", "one-traced", "no-neighbors"],
)
def test_too_few_comparable_steps_have_no_cost(times: Sequence[tuple[float, bool]]) -> None:
    assert _cost(times) is None


def test_the_cost_of_tracing_has_a_sentence() -> None:
    def sentence(traced_ms: float) -> str | None:
        times = [(10.0, False), (10.0, False), (traced_ms, True)] * 6
        flags = [layout.FLAG_TRACED if traced else 0 for _, traced in times]
        spans = [span(RUN, at, 100 * at, ms, flags=flags[at]) for at, (ms, _) in enumerate(times)]
        (group,) = steps(rows("spans", spans), 0).groups
        return cost_text(group)

    assert (
        sentence(11) == "a traced run takes 1.00 ms (10 %) longer than the steps beside it (median of 6 traced steps)"
    )
    assert sentence(9) == "a traced run takes no longer than the steps beside it (median of 6 traced steps)"


def test_kinds_and_keys_are_groups_in_order_of_importance() -> None:
    spans = [span(RUN, 1, 0, 1, key=1, count=2), span(RUN, 3, 1, 50, key=2, count=2)]
    spans += [span(BATCH, 1, 0, 1), span(layout.EPOCH, 1, 0, 99)]
    assert [(group.kind, group.key) for group in steps(rows("spans", spans), 0).groups] == [
        ("batch", 0),
        ("run", 2),
        ("run", 1),
    ]


def test_the_last_steps_are_listed_in_order_of_time() -> None:
    result = steps(rows("spans", [span(RUN, at, 100 - at, 1) for at in range(5)]), 2)
    assert [step.ordinal for step in result.listed_entries] == [1, 0]
    assert result.entry_count == 5
    # Of the sampled steps the last one was timed, from 97.5 to 100 ms.
    sampled = span(RUN, 60, 0, 100, count=40, flags=layout.FLAG_SAMPLED)
    result = steps(rows("spans", [sampled, span(RUN, 10, 50, 1), span(RUN, 100, 100, 1)]), None)
    assert [step.ordinal for step in result.listed_entries] == [10, 60, 100]
    # The others of them ran after step 10.
    assert [step.start_ns - START_NS for step in result.listed_entries] == [50 * MS, 51 * MS, 100 * MS]
    assert result.listed_entries[1].mean_ns == 2.5 * MS
    assert len(steps(rows("spans", [span(RUN, at, at, 1) for at in range(5)]), None).listed_entries) == 5


def test_the_key_of_a_session_run_has_a_text() -> None:
    assert call_label(RUN, (2 << 28) | (1 << 24) | (1 << 20) | 0xABC) == "2 feeds, 1 fetch, 1 target"
    assert call_label(layout.TRAIN, 15 << 24) == "15+ fetches"
    assert call_label(layout.FUNCTION, 0xAB) == "#ab"
    assert call_label(layout.FUNCTION, 7, {7: "train_step"}) == "train_step"
    assert call_label(BATCH, 0) == ""


def test_steps_of_a_function_have_its_name() -> None:
    spans = rows("spans", [span(layout.FUNCTION, 1, 0, 5, key=7), span(layout.FUNCTION, 2, 9, 1, key=8)])
    assert [group.call for group in steps(spans, 0, {7: "train_step"}).groups] == ["train_step", "#8"]


def test_calls_that_ran_once_share_a_row_if_they_have_the_same_label() -> None:
    one_fetch, two_fetches = 1 << 24, 2 << 24
    once = [{**span(RUN, at, at, 2), "key": one_fetch + at} for at in range(1, 301)]
    often = [{**span(RUN, at, at, 1), "key": one_fetch} for at in range(301, 310)]
    other = [{**span(RUN, 310, 310, 5), "key": two_fetches + 1}]
    result = steps(rows("spans", [*once, *often, *other]), None)
    assert [(group.call, group.count, group.key) for group in result.groups] == [
        ("1 fetch, each once", 300, 0),
        ("1 fetch", 9, one_fetch),
        ("2 fetches", 1, two_fetches + 1),
    ]
    assert [(group.call, group.count) for group in result.kinds] == [("all calls", 310)]
