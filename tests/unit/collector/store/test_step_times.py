"""Histograms of step times, and the times that are read off them."""

from collections import defaultdict
from statistics import median

import pytest
from fakes import random_rows
from fakes.rollups import rollup
from tfprof.collector.store import step_times
from tfprof.collector.store.devices import Devices
from tfprof.collector.store.rollup import sorted_by_node
from tfprof.collector.store.schema import ROLLUP, STEP_TIMES
from tfprof.collector.store.step_times import histogram_of, merge_histograms, unit_times

DEVICES = Devices(random_rows.device_names())


def histogram(rows, traces):
    ops = random_rows.table("ops", rows)
    return histogram_of(sorted_by_node(ops, DEVICES) if rows else ops, traces, DEVICES)


def summed(rows, traces):
    """Return the time of each unit in ``rows``."""
    table, _ = rollup(random_rows.table("ops", rows), traces, random_rows.device_names(), random_rows.NO_CANONICAL)
    return random_rows.unit_times(unit_times(histogram(rows, traces), table))


@pytest.mark.parametrize("seed", range(8))
def test_the_time_of_a_unit_is_its_median_times_the_steps_in_which_it_ran(seed):
    traces = random_rows.traces(0, 40)
    rows = random_rows.random_ops(0, 40, nodes=9, seed=seed)
    bases = dict(zip(traces["trace"].to_pylist(), traces["base_ns"].to_pylist(), strict=True))
    expected = {
        unit: len(by_trace) * median(by_trace.values())
        for unit, by_trace in random_rows.plain_times(rows, bases).items()
    }
    times = summed(rows, traces)
    assert times.keys() == expected.keys()
    assert times == pytest.approx(expected, rel=0.016)


@pytest.mark.parametrize("times", [[0], [1], [1234567], [7, 7, 7], [10_000, 30_000], [12_001, 12_003, 12_002]])
def test_the_median_of_two_steps_or_of_similar_ones_is_exact(times):
    rows = [random_rows.op(trace, 5, op_end_ns=ns) for trace, ns in enumerate(times)]
    assert summed(rows, random_rows.traces(0, len(times))) == {(5, random_rows.CPU): len(times) * median(times)}


def test_a_slow_step_does_not_change_the_median():
    rows = [random_rows.op(trace, 5, op_end_ns=ns) for trace, ns in enumerate([0, 0, 9_999_999])]
    assert summed(rows, random_rows.traces(0, 3)) == {(5, random_rows.CPU): 0}


def test_executions_in_a_step_add_up_and_are_not_rounded_to_microseconds():
    rows = [random_rows.op(0, 0, op_end_ns=300) for _ in range(100)]
    assert histogram(rows, random_rows.traces(0, 1)).to_pylist() == [
        {"node": 0, "device": random_rows.CPU, "bucket": 14 * 64 + 1 + 53, "steps": 1}
    ]


def test_a_bucket_is_at_most_two_percent_wide():
    times = [round(1.009**power) for power in range(2700)]
    rows = [random_rows.op(trace, 0, op_end_ns=ns) for trace, ns in enumerate(times)]
    buckets = defaultdict(list)
    for ns in times:
        (row,) = histogram([random_rows.op(0, 0, op_end_ns=ns)], random_rows.traces(0, 1)).to_pylist()
        buckets[row["bucket"]].append(ns)
    assert all(max(bucket) <= 1.02 * min(bucket) for bucket in buckets.values())
    assert [*buckets] == sorted(buckets)
    assert histogram(rows, random_rows.traces(0, len(rows)))["bucket"].to_pylist() == [*buckets]


@pytest.mark.parametrize("seed", range(4))
def test_merged_histograms_equal_that_of_all_rows(seed):
    traces = random_rows.traces(0, 30)
    parts = [random_rows.random_ops(first, 10, nodes=12, seed=seed * 10 + first) for first in (0, 10, 20)]
    merged = merge_histograms(*(histogram(part, traces) for part in parts))
    assert merged.equals(histogram([row for part in parts for row in part], traces))
    assert merged.schema == STEP_TIMES


def test_many_histograms_are_merged_a_few_at_a_time(monkeypatch):
    traces, most = random_rows.traces(0, 30), 0
    parts = [random_rows.random_ops(first, 1, nodes=12, seed=first) for first in range(30)]

    def merged(*histograms):
        nonlocal most
        most = max(most, len(histograms))
        return merge_histograms(*histograms)

    monkeypatch.setattr(step_times, "merge_histograms", merged)
    monkeypatch.setattr(step_times, "PENDING_ROWS", 50)
    many = step_times.merge_many(histogram(part, traces) for part in parts)
    assert many.equals(histogram([row for part in parts for row in part], traces))
    assert most <= len(parts) // 2


def test_nothing_has_no_times():
    empty = histogram([], random_rows.traces(0, 1))
    assert empty.equals(STEP_TIMES.empty_table())
    assert merge_histograms().equals(merge_histograms(empty, empty))
    assert not unit_times(empty, ROLLUP.empty_table()).num_rows
    one = histogram([random_rows.op(0, 0)], random_rows.traces(0, 1))
    assert merge_histograms(one, empty).equals(one)


def test_extreme_times_are_no_error():
    extremes = [(1 << 63) - 1, -(1 << 63), -1, 0]
    rows = [random_rows.op(trace, 0, op_end_ns=ns) for trace, ns in enumerate(extremes)]
    table = histogram(rows, random_rows.traces(0, len(rows)))
    table.validate(full=True)
    assert summed(rows, random_rows.traces(0, len(rows))) == {(0, random_rows.CPU): 0}
    assert table["steps"].to_pylist() == [3, 1]
