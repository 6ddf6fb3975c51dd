"""Student's t distribution: the probability of a value, and the value of a probability."""

import math
from typing import Final

_TERMS_MAX: Final = 300
_PRECISION: Final = 1e-13
_TINY: Final = 1e-300


def two_sided(t: float, freedom: float) -> float:
    """Return the probability that a value is as far from 0 as ``t``, or farther.

    ``freedom``: degrees of freedom, above 0. It is an incomplete beta function (Abramowitz and
    Stegun 26.7.1 and 26.5.8).
    """
    x = freedom / (freedom + t * t)
    if x >= 1:
        return 1.0
    a, b = freedom / 2, 0.5
    scale = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return scale * _fraction(x, a, b) / a
    return 1 - scale * _fraction(1 - x, b, a) / b


def quantile(probability: float, freedom: float) -> float:
    """Return the t above 0 with ``two_sided(t, freedom) == probability``, by bisection."""
    low, high = 0.0, 1.0
    while two_sided(high, freedom) > probability:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, freedom) > probability else (low, middle)
    return high


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
    numerator, denominator = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    value = denominator
    for term in range(1, _TERMS_MAX):
        for factor in (
            term * (b - term) * x / ((a + 2 * term - 1) * (a + 2 * term)),
            -(a + term) * (a + b + term) * x / ((a + 2 * term) * (a + 2 * term + 1)),
        ):
            denominator = 1 / _nonzero(1 + factor * denominator)
            numerator = _nonzero(1 + factor / numerator)
            value *= numerator * denominator
        if abs(numerator * denominator - 1) < _PRECISION:
            break
    return value


def _nonzero(number: float) -> float:
    return number if abs(number) > _TINY else _TINY
