"""Step times: percentiles of untraced steps, traced ones apart."""

import pytest
from fakes.made_store import MS, rows, span
from tfprof.collector.views.spread import spread
from tfprof.collector.views.steps import call, steps
from tfprof.shim import layout

RUN, BATCH = layout.RUN, layout.BATCH


def test_percentiles_are_of_single_steps() -> None:
    found = spread(rows("spans", [span(RUN, at, at, at) for at in range(1, 102)]))
    assert found is not None
    assert [found.p50_ns, found.p90_ns, found.p99_ns] == [51 * MS, 91 * MS, 100 * MS]
    assert (found.count, found.min_ns, found.max_ns, found.mean_ns) == (101, MS, 101 * MS, 51 * MS)


def test_a_row_that_stands_for_many_steps_weighs_as_many() -> None:
    many = span(RUN, 1, 0, 1, count=9, min_ns=5, max_ns=MS)
    found = spread(rows("spans", [many, span(RUN, 10, 1, 50)]))
    assert found is not None
    assert (found.count, found.min_ns, found.max_ns) == (10, 5, 50 * MS)
    assert found.p50_ns == pytest.approx(MS / 9)
    assert found.mean_ns == pytest.approx(5.1 * MS)


def test_nothing_has_no_spread() -> None:
    assert spread(rows("spans", [])) is None


def test_traced_failed_and_set_up_steps_are_kept_out_of_the_times() -> None:
    flags = [0, 0, layout.FLAG_TRACED, layout.FLAG_FAILED, layout.FLAG_SETUP | layout.FLAG_TRACED]
    (group,) = steps(rows("spans", [span(RUN, at, at, 10 + at, flags=flag) for at, flag in enumerate(flags)]), 0).groups
    assert group.untraced is not None
    assert group.traced is not None
    assert (group.untraced.count, group.untraced.max_ns) == (2, 11 * MS)
    assert (group.traced.count, group.traced.p50_ns) == (1, 12 * MS)
    assert (group.failed, group.setup, group.count) == (1, 1, 5)
    assert group.cost_ns == group.traced.p50_ns - group.untraced.p50_ns


def test_without_traced_steps_nothing_is_said_of_their_cost() -> None:
    (group,) = steps(rows("spans", [span(RUN, 1, 0, 1)]), 0).groups
    assert group.cost_ns is None


def test_kinds_and_keys_are_groups_batches_first_and_then_by_time() -> None:
    spans = [span(RUN, 1, 0, 1, key=1), span(RUN, 2, 1, 50, key=2), span(BATCH, 1, 0, 1), span(layout.EPOCH, 1, 0, 99)]
    assert [(group.kind, group.key) for group in steps(rows("spans", spans), 0).groups] == [
        ("batch", 0),
        ("run", 2),
        ("run", 1),
    ]


def test_the_last_steps_are_listed_in_order_of_time() -> None:
    found = steps(rows("spans", [span(RUN, at, 100 - at, 1) for at in range(5)]), 2)
    assert [step.ordinal for step in found.steps] == [1, 0]
    assert found.rows == 5
    assert len(steps(rows("spans", [span(RUN, at, at, 1) for at in range(5)]), None).steps) == 5


def test_a_session_runs_key_is_told_in_words() -> None:
    assert call(RUN, (2 << 20) | (1 << 10) | 1) == "2 feeds, 1 fetch, 1 target"
    assert call(RUN, 3 << 10) == "3 fetches"
    assert call(layout.FUNCTION, 7) == "#7"
    assert call(BATCH, 0) == ""
