"""Numbers as text."""

import pytest
from tfprof.collector import numbers


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1000, "1.00k"), (2_500_000, "2.50m"), (3_000_000_000, "3.00b"), (-5000, "-5000")],
)
def test_counts_are_printed_as_in_the_tf_profiler(number: int, text: str) -> None:
    assert numbers.tf_profiler_count(number) == text


@pytest.mark.parametrize(
    ("micros", "text"), [(0, "0us"), (999, "999us"), (1500, "1.50ms"), (2_000_000, "2.00sec"), (-7, "-7us")]
)
def test_times_are_printed_as_in_the_tf_profiler(micros: int, text: str) -> None:
    assert numbers.tf_profiler_time(micros) == text


@pytest.mark.parametrize(
    ("size", "text"), [(999, "999B"), (1024, "1.02KB"), (5_000_000_000, "5000.00MB"), (-2048, "-2048B")]
)
def test_bytes_are_printed_as_in_the_tf_profiler(size: int, text: str) -> None:
    assert numbers.tf_profiler_bytes(size) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "-"),
        (float("nan"), "-"),
        (float("inf"), "-"),
        (0, "0 ns"),
        (999, "999 ns"),
        (999.6, "1.00 µs"),
        (1500, "1.50 µs"),
        (9_996, "10.0 µs"),
        (999_600, "1.00 ms"),
        (999_700_000, "1.00 s"),
        (41_200_000, "41.2 ms"),
        (412_000_000, "412 ms"),
        (7.5e9, "7.50 s"),
        (100e9, "1m 40s"),
        (3660e9, "1h 01m"),
    ],
)
def test_durations_have_a_suitable_unit(ns: float | None, text: str) -> None:
    assert numbers.duration(ns) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (999, "999 B"),
        (1500, "1.5 KB"),
        (150_000, "150 KB"),
        (999_700, "1.0 MB"),
        (2.5e9, "2.5 GB"),
    ],
)
def test_sizes_have_a_suitable_unit(size: float | None, text: str) -> None:
    assert numbers.size(size) == text


@pytest.mark.parametrize(
    ("part", "text"), [(None, "-"), (0, "0.0 %"), (0.0004, "0.04 %"), (0.006, "0.6 %"), (0.61, "61 %")]
)
def test_percentages_have_as_many_digits_as_they_need(part: float | None, text: str) -> None:
    assert numbers.percent(part) == text


def test_a_sparkline_is_scaled_from_0_to_the_largest_mean() -> None:
    assert numbers.sparkline([0, 1, 2, 4], 4) == "▁▃▅█"
    assert numbers.sparkline([0, 2, 4, 4], 2) == "▃█"
    assert numbers.sparkline([0, 0], 4) == "▁▁"
    assert numbers.sparkline([], 4) == ""


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (2, "2"),
        (1 / 6, "0.17"),
        (14.5, "14.5"),
        (999, "999"),
        (1000, "1.00 k"),
        (75_760_000, "75.8 M"),
        (2e12, "2.00 T"),
    ],
)
def test_quantities_have_about_three_digits(number: float, text: str) -> None:
    assert numbers.quantity(number) == text


@pytest.mark.parametrize(
    ("times", "text"),
    [
        ([810_000, 840_000, 1_240_000], "0.81/0.84/1.24 ms"),
        ([0, 50_000, 100_000], "0/50/100 µs"),
        ([7_000, 7_000, 7_000], "7.00/7.00/7.00 µs"),
        ([1_000_000, 2_000_000, 12_500_000], "1.0/2.0/12.5 ms"),
        ([400_000, 700_000, 179_000_000], "0.4/0.7/179 ms"),
        ([2_000, 31_400, 999_700], "0.002/0.03/1.00 ms"),
        ([2e9, 1501e9, 3e12], "2.0/1501/3000 s"),
        ([0, 0, 7], "0/0/7 ns"),
        ([400_000, 2_600_000, 179_000_000], "0.4/2.6/179 ms"),
        ([1, 2, 3], "1/2/3 ns"),
        ([999.5, 1000, 1001], "1.00/1.00/1.00 µs"),
        ([500_000, 500_000, 1e9], "0.0005/0.0005/1.00 s"),
        ([62.5, 125, 250], "62/125/250 ns"),
        ([1e3, 1e6, 1e9], "0.000001/0.001/1.00 s"),
        ([0.5, 1.5, 2.5], "0/2/2 ns"),
    ],
)
def test_a_range_of_times_has_one_unit(times: list[float], text: str) -> None:
    assert numbers.range_of(*times) == text
