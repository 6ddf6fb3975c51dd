"""The order of entries with equal values: stable, or that of std::sort in TensorFlow 1.15."""

import random
from typing import Any

import pytest
from tfprof.collector.tfviews import order
from tfprof.collector.tfviews.order import ordered
from tfprof.collector.tfviews.parity import Parity

OLD_PARITY = Parity("1.15")


def sorted_positions(values: list[int], *, parity: Parity) -> list[int]:
    """Return positions of ``values``, the largest first."""
    return ordered(range(len(values)), values.__getitem__, descending=True, parity=parity)


def test_equal_entries_keep_their_order() -> None:
    values = [at % 3 for at in range(40)]
    assert sorted_positions(values, parity=Parity()) == sorted(range(40), key=lambda at: -values[at])


def test_older_versions_sort_up_to_sixteen_entries_stably() -> None:
    assert sorted_positions([1] * 16, parity=OLD_PARITY) == list(range(16))


#: The outputs of a program with GCC's std::sort: for equal values, and for values from 0 to 2.
EQUAL_VALUES_ORDER = "10 19 18 17 16 15 14 13 12 11 0 9 8 7 6 5 4 3 2 1"
THREE_VALUES_ORDER = "23 2 20 5 17 8 14 11 1 22 19 16 13 10 7 4 12 15 9 18 6 21 3 0"
#: Values from which each partition splits off only two, and the output of the program for them.
ADVERSE_VALUES = (
    "-38 -1 -36 -3 -34 -5 -32 -7 -37 -9 -33 -11 -38 -13 -31 -15 -35 -17 -20 -19 "
    "0 -2 -4 -6 -8 -10 -12 -14 -16 -18 -30 -27 -28 -25 -26 -23 -24 -21 -22 -29"
)
ADVERSE_VALUES_ORDER = (
    "20 1 21 3 22 5 23 7 24 9 25 11 26 13 27 15 28 17 29 19 18 37 38 35 36 33 34 31 32 39 30 14 6 10 4 16 2 8 0 12"
)


def numbers(text: str) -> list[int]:
    """Return the numbers in ``text``."""
    return list(map(int, text.split()))


def test_more_entries_have_the_order_of_std_sort() -> None:
    assert sorted_positions([1] * 20, parity=OLD_PARITY) == numbers(EQUAL_VALUES_ORDER)
    assert sorted_positions([at * 7 % 3 for at in range(24)], parity=OLD_PARITY) == numbers(THREE_VALUES_ORDER)


def test_where_quicksort_is_too_deep_the_order_is_that_of_heap_sort(monkeypatch: pytest.MonkeyPatch) -> None:
    heap_sorts: list[int] = []
    heap_sort = order.heap_sort

    def counting_heap_sort(*arguments: Any) -> None:
        heap_sorts.append(1)
        heap_sort(*arguments)

    monkeypatch.setattr(order, "heap_sort", counting_heap_sort)
    assert sorted_positions(numbers(ADVERSE_VALUES), parity=OLD_PARITY) == numbers(ADVERSE_VALUES_ORDER)
    assert heap_sorts


def test_any_values_are_sorted_without_loss() -> None:
    rng = random.Random(0)
    for _ in range(200):
        values = [rng.randint(0, 9) for _ in range(rng.randint(0, 120))]
        positions = sorted_positions(values, parity=OLD_PARITY)
        assert sorted(positions) == list(range(len(values)))
        assert [values[at] for at in positions] == sorted(values, reverse=True)
