"""Student's t distribution against published tables, and against the normal distribution."""

from statistics import NormalDist

import pytest
from tfprof.collector.summaries.t_distribution import quantile, two_sided

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
