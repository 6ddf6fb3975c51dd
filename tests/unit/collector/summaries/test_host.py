"""Rates and levels of a job and its host."""

import pytest
from fakes.made_store import SECOND, START_NS, rows
from tfprof.collector.summaries.host import cpus, host_series, job_series, samples_between


def moment(second: float) -> int:
    """Return the moment ``second`` seconds after START_NS, in ns."""
    return START_NS + int(second * SECOND)


def test_counters_become_rates_over_the_time_between_samples() -> None:
    samples = [
        {"t_ns": moment(0), "cpu_user_s": 1.0, "cpu_system_s": 0.5, "read_bytes": 0},
        {"t_ns": moment(2), "cpu_user_s": 3.0, "cpu_system_s": 1.5, "read_bytes": 10},
        {"t_ns": moment(3), "cpu_user_s": 3.0, "cpu_system_s": 1.5, "read_bytes": 10},
    ]
    series = {entry.name: entry for entry in job_series(rows("samples", samples), None)}
    assert series["cpu_cores"].values == (1.5, 0.0)
    assert series["read_bytes_per_s"].values == (5.0, 0.0)
    assert (series["cpu_cores"].mean, series["cpu_cores"].maximum) == (0.75, 1.5)


def test_levels_are_unchanged_and_samples_are_sorted_by_time() -> None:
    samples = [{"t_ns": moment(1), "rss_bytes": 30}, {"t_ns": moment(0), "rss_bytes": 10}]
    series = {entry.name: entry.values for entry in job_series(rows("samples", samples), None)}
    assert series["rss_bytes"] == (10.0, 30.0)


def test_a_decreasing_counter_is_no_negative_rate() -> None:
    samples = [{"t_ns": moment(0), "write_bytes": 5}, {"t_ns": moment(1), "write_bytes": 1}]
    series = {entry.name: entry.values for entry in job_series(rows("samples", samples), None)}
    assert series["write_bytes_per_s"] == (0.0,)


def test_used_memory_is_total_memory_minus_available_memory() -> None:
    samples = rows(
        "host_samples", [{"t_ns": moment(0), "cpus": 4, "memory_total_bytes": 10, "memory_available_bytes": 4}]
    )
    assert {entry.name: entry.values for entry in host_series(samples)}["memory_used_bytes"] == (6.0,)
    assert cpus(samples) == 4


def test_samples_of_an_interval_include_the_one_before_it() -> None:
    samples = rows("host_samples", [{"t_ns": moment(second)} for second in range(10)])
    assert samples_between(samples, moment(3), moment(5))["t_ns"].to_pylist() == [
        moment(2),
        moment(3),
        moment(4),
        moment(5),
    ]


def test_a_series_without_samples_has_no_mean() -> None:
    (first, *_) = job_series(rows("samples", []), None)
    assert (first.mean, first.maximum) == (None, None)
    assert cpus(rows("host_samples", [])) is None


def test_use_above_the_number_of_cores_is_moved_to_earlier_intervals() -> None:
    readings = [(0, 0.0), (1, 1.0), (2, 2.0), (3, 4.1)]
    samples = [{"t_ns": moment(second), "cpus": 2, "cpu_busy_s": busy} for second, busy in readings]
    (busy_cores, *_) = host_series(rows("host_samples", samples))
    assert busy_cores.name == "cpu_cores"
    assert busy_cores.values == pytest.approx((1.0, 1.1, 2.0))
    assert busy_cores.mean == pytest.approx(4.1 / 3)


def test_a_process_that_is_found_late_adds_at_most_the_cores_of_the_host() -> None:
    readings = [(0, 0.0), (1, 0.5), (2, 1.0), (3, 6.0)]
    samples = rows("samples", [{"t_ns": moment(second), "cpu_user_s": used} for second, used in readings])
    assert job_series(samples, 2)[0].values == pytest.approx((2.0, 2.0, 2.0))
    assert job_series(samples, None)[0].maximum == pytest.approx(5.0)


def test_ended_processes_have_no_memory_and_their_use_counts_until_the_end() -> None:
    samples = [
        {"t_ns": moment(0), "processes": 1, "rss_bytes": 10},
        {"t_ns": moment(1), "processes": 1, "rss_bytes": 20, "cpu_user_s": 0.5},
        {"t_ns": moment(2), "cpu_user_s": 1.0},
    ]
    series = {entry.name: entry.values for entry in job_series(rows("samples", samples), None)}
    assert series["rss_bytes"] == (10.0, 20.0)
    assert series["processes"] == (1.0, 1.0)
    assert series["cpu_cores"] == (0.5, 0.5)
