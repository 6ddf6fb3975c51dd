"""Rates and levels of a job and its host."""

from fakes.made_store import SECOND, START_NS, rows
from tfprof.collector.views.host import between, cpus, host_series, job_series


def at(second: float) -> int:
    """Return a moment in ns."""
    return START_NS + int(second * SECOND)


def test_counters_become_rates_over_the_time_between_samples() -> None:
    samples = [
        {"t_ns": at(0), "cpu_user_s": 1.0, "cpu_system_s": 0.5, "read_bytes": 0},
        {"t_ns": at(2), "cpu_user_s": 3.0, "cpu_system_s": 1.5, "read_bytes": 10},
        {"t_ns": at(3), "cpu_user_s": 3.0, "cpu_system_s": 1.5, "read_bytes": 10},
    ]
    series = {one.name: one for one in job_series(rows("samples", samples))}
    assert series["cpu_cores"].values == (1.5, 0.0)
    assert series["read_bytes_per_s"].values == (5.0, 0.0)
    assert (series["cpu_cores"].mean, series["cpu_cores"].most) == (0.75, 1.5)


def test_levels_are_as_they_are_and_samples_are_taken_in_order_of_time() -> None:
    samples = [{"t_ns": at(1), "rss_bytes": 30}, {"t_ns": at(0), "rss_bytes": 10}]
    series = {one.name: one.values for one in job_series(rows("samples", samples))}
    assert series["rss_bytes"] == (10.0, 30.0)


def test_a_counter_that_goes_back_is_no_negative_rate() -> None:
    samples = [{"t_ns": at(0), "write_bytes": 5}, {"t_ns": at(1), "write_bytes": 1}]
    series = {one.name: one.values for one in job_series(rows("samples", samples))}
    assert series["write_bytes_per_s"] == (0.0,)


def test_used_memory_is_what_is_not_available() -> None:
    samples = rows("host_samples", [{"t_ns": at(0), "cpus": 4, "memory_total_bytes": 10, "memory_available_bytes": 4}])
    assert {one.name: one.values for one in host_series(samples)}["memory_used_bytes"] == (6.0,)
    assert cpus(samples) == 4


def test_samples_of_a_while_come_with_the_one_before_it() -> None:
    samples = rows("host_samples", [{"t_ns": at(second)} for second in range(10)])
    assert between(samples, at(3), at(5))["t_ns"].to_pylist() == [at(2), at(3), at(4), at(5)]


def test_a_series_without_samples_has_no_mean() -> None:
    (first, *_) = job_series(rows("samples", []))
    assert (first.mean, first.most) == (None, None)
    assert cpus(rows("host_samples", [])) is None
