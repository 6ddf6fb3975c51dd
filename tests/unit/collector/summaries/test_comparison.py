"""Times of runs before and after a change, and the distribution that judges them."""

import math
import random
from statistics import NormalDist

import pytest
from tfprof.collector.summaries.comparison import (
    ALPHA,
    DIFFERENCE_MIN,
    Sides,
    compare_ops,
    compare_step,
    quantile,
    two_sided,
)

OPS = 40
#: Standard deviation between equal runs: of all ops together, and of one op (of the logarithm).
COMMON, OWN = 0.035, 0.04


def simulated_runs(seed: int, count: int, slower: float = 1.0, common: float = 1.0) -> dict[str, list[float]]:
    """Return the times of ops in ``count`` runs; op 0, the largest, is ``slower``."""
    generator = random.Random(seed)
    times: dict[str, list[float]] = {str(op): [] for op in range(OPS)}
    for _ in range(count):
        factor = common * math.exp(generator.gauss(0, COMMON))
        for op in range(OPS):
            own = math.exp(generator.gauss(0, OWN)) * (slower if op == 0 else 1)
            times[str(op)].append(1e6 * 0.85**op * factor * own)
    return times


def compared(before: dict[str, list[float]], after: dict[str, list[float]]):
    return compare_ops({op: Sides(before[op], after[op]) for op in before})


def test_of_many_pairs_of_equal_runs_hardly_one_raises_an_alarm() -> None:
    alarms = 0
    for pair in range(40):
        comparison = compared(simulated_runs(2 * pair, 3), simulated_runs(2 * pair + 1, 3))
        alarms += any(change.significant for change in comparison.changes.values())
    assert alarms <= 2


def test_a_large_op_that_becomes_a_fifth_slower_is_found() -> None:
    found = 0
    for pair in range(20):
        comparison = compared(simulated_runs(2 * pair, 3), simulated_runs(2 * pair + 1, 3, slower=1.2))
        found += bool(comparison.changes["0"].significant) and comparison.changes["0"].own_ratio > 1.1
    assert found >= 18


def test_what_all_ops_have_in_common_is_no_change_of_one() -> None:
    comparison = compared(simulated_runs(1, 4), simulated_runs(2, 4, common=1.3))
    assert comparison.common_ratio == pytest.approx(1.3, rel=0.08)
    assert not any(change.significant for change in comparison.changes.values())
    assert all(change.ratio == pytest.approx(1.3, rel=0.25) for change in comparison.changes.values())


def test_more_runs_show_smaller_changes() -> None:
    few, many = (compared(simulated_runs(5, runs), simulated_runs(6, runs)).changes["0"] for runs in (2, 8))
    assert few.visible is not None
    assert many.visible is not None
    assert DIFFERENCE_MIN <= many.visible < few.visible / 1.5
    assert few.runs is not None
    assert few.runs > 2


def test_the_visible_change_is_found_about_every_second_time() -> None:
    """At the limit of what is visible, chance decides."""
    comparison = compared(simulated_runs(0, 3), simulated_runs(1, 3))
    visible = comparison.changes["0"].visible
    assert visible is not None
    found = sum(
        bool(
            compared(simulated_runs(2 * n, 3), simulated_runs(2 * n + 1, 3, slower=1 + visible))
            .changes["0"]
            .significant
        )
        for n in range(30)
    )
    assert 5 <= found <= 26


def test_one_run_a_side_has_no_verdict() -> None:
    comparison = compared(simulated_runs(1, 1), simulated_runs(2, 1, slower=3))
    change = comparison.changes["0"]
    assert (change.significant, change.runs) == (None, None)
    assert change.own_ratio == pytest.approx(3, rel=0.2)
    assert change.visible is not None
    assert 0.05 < change.visible < 0.5


def test_few_ops_have_no_common_factor() -> None:
    comparison = compare_ops({"a": Sides([100.0, 101.0], [200.0, 202.0]), "b": Sides([10.0, 10.1], [10.0, 10.1])})
    assert comparison.common_ratio == 1
    assert comparison.changes["a"].significant
    assert not comparison.changes["b"].significant


def test_the_step_is_compared_by_its_runs_alone() -> None:
    assert compare_step(Sides([100.0, 101.0, 99.0], [120.0, 121.0, 119.0])).significant
    noisy = compare_step(Sides([100.0, 140.0, 80.0], [120.0, 150.0, 90.0]))
    assert noisy.significant is False
    assert noisy.visible is not None
    assert noisy.visible > 0.5
    alone = compare_step(Sides([100.0], [300.0]))
    assert (alone.significant, alone.visible, alone.ratio) == (None, None, pytest.approx(3))
    equal = compare_step(Sides([100.0, 100.0], [100.0, 100.0]))
    assert (equal.significant, equal.ratio) == (False, 1)


def test_no_ops_are_no_changes() -> None:
    assert compare_ops({}).changes == {}
    assert 0 < ALPHA < 0.05


#: (probability, degrees of freedom, t), from tables with three decimals.
TABLE = [
    (0.05, 1, 12.706),
    (0.01, 2, 9.925),
    (0.05, 4, 2.776),
    (0.01, 10, 3.169),
    (0.001, 30, 3.646),
    (0.2, 5, 1.476),
    (0.05, 120, 1.980),
]


@pytest.mark.parametrize(("probability", "freedom", "t"), TABLE)
def test_quantiles_are_those_of_the_tables(probability: float, freedom: int, t: float) -> None:
    assert quantile(probability, freedom) == pytest.approx(t, abs=6e-4)
    assert two_sided(t, freedom) == pytest.approx(probability, rel=2e-3)
    assert two_sided(-t, freedom) == two_sided(t, freedom)


def test_with_many_degrees_of_freedom_it_is_the_normal_distribution() -> None:
    for probability in (0.5, 0.05, 1e-4):
        assert quantile(probability, 1e6) == pytest.approx(NormalDist().inv_cdf(1 - probability / 2), rel=1e-4)


def test_the_center_is_certain_and_tails_are_small() -> None:
    assert two_sided(0, 3) == 1
    assert two_sided(1e3, 30) < 1e-50
    assert quantile(1e-9, 2) == pytest.approx(3.16e4, rel=0.01)
