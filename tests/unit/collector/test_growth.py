"""Values that go up and down do not count as steady growth."""

import pytest
from tfprof.collector.growth import steady_growth

#: Memory of a job (MB). Its shuffle buffer fills and empties in each epoch, about once a second.
SHUFFLED = [915, 782, 823, 717, 796, 777, 979, 833, 895, 986, 660, 828, 902, 922, 760, 869, 1015, 958, 872]


@pytest.mark.parametrize(
    "values",
    [
        [100 + 10 * number for number in range(18)],
        [100 + 10 * number + 30 * (number % 2) for number in range(18)],
        [100] * 6 + [100, 100, 150, 150, 200, 200] + [200] * 6,
    ],
    ids=["even", "with collections", "within the middle third"],
)
def test_values_that_grow(values: list[float]) -> None:
    growth = steady_growth(values)
    assert growth is not None
    assert 80 <= growth.increase <= 130


@pytest.mark.parametrize(
    "values", [[100] * 18, SHUFFLED, [100] * 12 + [200] * 6], ids=["flat", "of a shuffle buffer", "one late step"]
)
def test_values_that_do_not_grow_steadily(values: list[float]) -> None:
    assert steady_growth(values) is None
