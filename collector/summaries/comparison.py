"""Compares times of runs before and after a change: which of them differ beyond noise.

The run is the sample. Steps of one run are alike for reasons that another run does not share, so a
test on steps would report differences between equal programs. A factor that all ops have in common
is taken out first. The variance of an op is drawn towards the variance of ops of similar size.
Larger ops get a larger share of the significance.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist, fmean, median
from typing import Final

_TERMS_MAX: Final = 300
_PRECISION: Final = 1e-13
_TINY: Final = 1e-300
#: Probability that any op of two equal programs is called different.
ALPHA: Final = 0.01
#: Share of ALPHA that is given to ops by their share of the time; the rest is given to all alike.
_ALPHA_BY_TIME: Final = 0.8
#: Maximum weight of the variance of ops of similar size, in degrees of freedom.
_PRIOR_FREEDOM: Final = 30
#: Minimum standard deviation between runs (of the logarithm). A smaller one is raised to it.
_DEVIATION_MIN: Final = 0.005
#: The times of ops of similar size differ at most by this factor.
_LIKE_SIZE: Final = 4.0
#: Ops with a smaller share of the time do not count for the common factor.
_COMMON_SHARE_MIN: Final = 0.005
#: Minimum number of ops for a common factor.
_COMMON_OPS_MIN: Final = 5
#: Smallest difference that is called one (of the ratio).
DIFFERENCE_MIN: Final = 0.02
#: Difference for which the number of runs is estimated, and the largest such number.
PLANNED_DIFFERENCE: Final = 0.10
_RUNS_MAX: Final = 1000

#: Minimum number of steps in a series that is tested, and maximum correlation of neighboring steps.
_SERIES_MIN: Final = 10
_CORRELATION_MAX: Final = 0.95

#: Times of one quantity in ns, one for each run.
Times = Sequence[float]


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


@dataclass(frozen=True, slots=True)
class Sides:
    """The times of one quantity in the runs before and after the change."""

    before: Times
    after: Times


@dataclass(frozen=True, slots=True)
class Change:
    """How a time changed.

    ``before_ns`` and ``after_ns``: geometric means over the runs. ``ratio``: after divided by
    before, and ``own_ratio`` the same without the factor that all ops have in common. ``visible``:
    the smallest relative change that these runs can show, None if unknown. ``significant``: whether
    the own change is beyond noise; None with one run a side. ``runs``: number of runs a side that
    show a change of PLANNED_DIFFERENCE, None if unknown.
    """

    before_ns: float
    after_ns: float
    ratio: float
    own_ratio: float
    visible: float | None
    significant: bool | None
    runs: int | None


@dataclass(frozen=True, slots=True)
class OpChange:
    """One op type on a device.

    A time is None if the op did not run on that side; ``change`` is then None, too.
    """

    op: str
    device: str
    before_ns: float | None
    after_ns: float | None
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class OpSpread:
    """The time of an op type in equal runs, ns: geometric mean, least, most.

    ``visible``: the smallest relative change that as many runs a side can show, None if unknown.
    """

    op: str
    device: str
    ns: float
    least_ns: float
    most_ns: float
    visible: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes of ops by key, and the ratio that all ops have in common (1.0: none)."""

    common_ratio: float
    changes: Mapping[str, Change]


def compare_step(times: Sides) -> Change:
    """Return how the step's time changed; its variance is that between the runs alone."""
    before, after = _logs(times)
    freedom = len(before) + len(after) - 2
    deviation = math.sqrt(_pooled_variance(before, after)) if freedom else 0.0
    return _change(before, after, 0.0, deviation, freedom, ALPHA)


def compare_series(times: Sides) -> Change:
    """Return how the steps of one job changed at a moment; ``times`` are those of single steps.

    Neighboring steps are alike, so each counts for less than one sample, depending on their
    correlation.
    """
    before, after = _logs(times)
    errors = [_error_of_mean(side) for side in (before, after)]
    freedom = max(1, min(len(before), len(after)) - 1)
    error = math.hypot(*errors)
    difference = fmean(after) - fmean(before)
    is_tested = min(len(before), len(after)) >= _SERIES_MIN
    visible = max(DIFFERENCE_MIN / 2, math.expm1(quantile(ALPHA, freedom) * error)) if is_tested else None
    significant = abs(math.expm1(difference)) > visible if visible is not None else None
    ratio = math.exp(difference)
    return Change(math.exp(fmean(before)), math.exp(fmean(after)), ratio, ratio, visible, significant, None)


def _error_of_mean(logs: Sequence[float]) -> float:
    """Return the standard error of the mean of a series whose neighbors are correlated."""
    if len(logs) < _SERIES_MIN:
        return math.inf
    mean = fmean(logs)
    squares = math.fsum((value - mean) ** 2 for value in logs)
    products = math.fsum((value - mean) * (following - mean) for value, following in pairwise(logs))
    correlation = min(_CORRELATION_MAX, max(0.0, products / squares)) if squares else 0.0
    return math.sqrt(squares / (len(logs) - 1) / len(logs) * (1 + correlation) / (1 - correlation))


def compare_ops(ops: Mapping[str, Sides]) -> Comparison:
    """Return how the times of ``ops`` changed; each op has the same runs, and times above 0."""
    if not ops:
        return Comparison(1.0, {})
    logs = {key: _logs(times) for key, times in ops.items()}
    sizes = {key: math.exp(fmean((*before, *after))) for key, (before, after) in logs.items()}
    total = sum(sizes.values())
    factors = _common_factors(logs, {key: size / total for key, size in sizes.items()})
    own_logs = {key: _without(values, factors) for key, values in logs.items()}
    common = fmean(factors[1]) - fmean(factors[0])
    deviations = _deviations(own_logs, sizes)
    changes = {
        key: _change(
            *logs[key],
            common,
            *deviations[key],
            ALPHA * (_ALPHA_BY_TIME * sizes[key] / total + (1 - _ALPHA_BY_TIME) / len(ops)),
        )
        for key in ops
    }
    return Comparison(math.exp(common), changes)


_Logs = tuple[list[float], list[float]]


def _logs(times: Sides) -> _Logs:
    return list(map(math.log, times.before)), list(map(math.log, times.after))


def _common_factors(logs: Mapping[str, _Logs], shares: Mapping[str, float]) -> _Logs:
    """Return for each run the factor (logarithm) that its ops have in common."""
    large = [values for key, values in logs.items() if shares[key] >= _COMMON_SHARE_MIN]
    first_before, first_after = next(iter(logs.values()))
    if len(large) < _COMMON_OPS_MIN:
        return [0.0] * len(first_before), [0.0] * len(first_after)
    means = [fmean((fmean(before), fmean(after))) for before, after in large]
    return (
        [
            median(values[0][run] - mean for values, mean in zip(large, means, strict=True))
            for run in range(len(first_before))
        ],
        [
            median(values[1][run] - mean for values, mean in zip(large, means, strict=True))
            for run in range(len(first_after))
        ],
    )


def _without(values: _Logs, factors: _Logs) -> _Logs:
    before, after = (
        [value - factor for value, factor in zip(side, side_factors, strict=True)]
        for side, side_factors in zip(values, factors, strict=True)
    )
    return before, after


def _pooled_variance(before: Sequence[float], after: Sequence[float]) -> float:
    squares = sum((value - fmean(side)) ** 2 for side in (before, after) for value in side)
    return squares / max(1, len(before) + len(after) - 2)


def _deviations(own_logs: Mapping[str, _Logs], sizes: Mapping[str, float]) -> dict[str, tuple[float, int]]:
    """Return the standard deviation of each op between equal runs, and its degrees of freedom.

    With one run a side, it is the spread of the changes of all ops. With few runs, the variance of
    ops of similar size is itself uncertain, and has less weight.
    """
    before, after = next(iter(own_logs.values()))
    freedom = len(before) + len(after) - 2
    if not freedom:
        differences = [abs(after[0] - before[0]) for before, after in own_logs.values()]
        spread = max(_DEVIATION_MIN, 1.4826 * median(differences) / math.sqrt(2))
        return dict.fromkeys(own_logs, (spread, 0))
    variances = {key: _pooled_variance(*values) for key, values in own_logs.items()}
    deviations = {}
    for key, variance in variances.items():
        like = [
            variances[other]
            for other in sizes
            if max(sizes[key], sizes[other]) <= _LIKE_SIZE * min(sizes[key], sizes[other])
        ]
        prior_freedom = min(_PRIOR_FREEDOM, freedom * len(like))
        drawn = (prior_freedom * fmean(like) + freedom * variance) / (prior_freedom + freedom)
        deviations[key] = max(_DEVIATION_MIN, math.sqrt(drawn)), prior_freedom + freedom
    return deviations


def _change(
    before: Sequence[float], after: Sequence[float], common: float, deviation: float, freedom: float, alpha: float
) -> Change:
    """Return the change between two sides; all arguments but the last two are logarithms."""
    difference = fmean(after) - fmean(before)
    own = difference - common
    error = deviation * math.sqrt(1 / len(before) + 1 / len(after))
    is_tested = len(before) + len(after) > 2
    visible, significant, runs = None, None, None
    if is_tested:
        limit = quantile(alpha, freedom) * error
        visible = max(DIFFERENCE_MIN, math.expm1(limit))
        significant = abs(math.expm1(own)) > DIFFERENCE_MIN and two_sided(own / max(error, 1e-12), freedom) < alpha
        runs = _runs_needed(deviation, freedom - len(before) - len(after) + 2, alpha)
    elif deviation:
        visible = max(DIFFERENCE_MIN, math.expm1(3 * error))
    return Change(
        math.exp(fmean(before)), math.exp(fmean(after)), math.exp(difference), math.exp(own), visible, significant, runs
    )


def _runs_needed(deviation: float, prior_freedom: float, alpha: float) -> int | None:
    """Return the number of runs a side that show a change of PLANNED_DIFFERENCE."""
    normal = NormalDist().inv_cdf(1 - alpha / 2)
    fewest = math.floor(2 * (normal * deviation / math.log1p(PLANNED_DIFFERENCE)) ** 2)
    for runs in range(max(2, fewest), _RUNS_MAX):
        if quantile(alpha, prior_freedom + 2 * runs - 2) * deviation * math.sqrt(2 / runs) <= math.log1p(
            PLANNED_DIFFERENCE
        ):
            return runs
    return None
