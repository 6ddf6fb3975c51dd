"""Compares the workers of a distributed job: who arrives last, and who is waited for."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

#: The basis of the order of workers: their waits for each other in traced steps, the starts of
#: their steps, or the time from step to step of workers that do not wait for each other.
COLLECTIVES, STARTS, PACE, NOTHING = "collectives", "step starts", "step to step", "none"
#: Workers that wait for each other have periods within this factor.
_EQUAL_FACTOR: Final = 1.25
#: The error of an offset covers this share of the distances from it.
_ERROR_SHARE: Final = 0.9
#: Minimum number of common steps that align clocks.
_COMMON_MIN: Final = 3


class Moments(NamedTuple):
    """Start and end of a step, ns."""

    start_ns: int
    end_ns: int


class Clock(NamedTuple):
    """The correction of a worker's times to the clock of the reference, and its error; ns."""

    offset_ns: float
    error_ns: float


class WorkerSteps(NamedTuple):
    """What is known about the steps of one worker.

    ``steps``: those that were timed one by one, by number. ``waits_ns``: mean wait for other
    workers in a traced step, None without a traced step. ``period_ns``: mean time from step to
    step, None without steps.
    """

    host: str
    steps: Mapping[int, Moments]
    waits_ns: float | None
    period_ns: float | None = None

    @property
    def has_steps(self) -> bool:
        """Whether the worker ran a step."""
        return bool(self.steps) or self.waits_ns is not None or self.period_ns is not None


class Comparison(NamedTuple):
    """A worker beside the others.

    ``late_ns``: mean time from the first worker's start of a step to this worker's, over the
    ``common`` steps; ``last``: how often it started last. ``behind_ns``: how long the others wait
    for it in a step, None if it is unknown. ``clock``: None if its clock cannot be compared.
    """

    clock: Clock | None
    common: int
    late_ns: float | None
    last: int
    behind_ns: float | None


_UNCOMPARED: Final = Comparison(None, 0, None, 0, None)


def align(reference: Mapping[int, int], ends: Mapping[int, int]) -> Clock | None:
    """Return the clock of a worker whose steps end at the same time as those of the reference.

    This holds for steps with collectives. Both arguments map the number of a step to its end, ns.
    The offset is the median of the differences. Nine of ten differences are within the error. None
    if fewer than three steps are common.
    """
    differences = [reference[step] - ends[step] for step in reference.keys() & ends.keys()]
    if len(differences) < _COMMON_MIN:
        return None
    middle = statistics.median_high(differences)
    distances = sorted(abs(difference - middle) for difference in differences)
    return Clock(float(middle), float(distances[min(len(distances) - 1, int(_ERROR_SHARE * len(distances)))]))


def compare(workers: Sequence[WorkerSteps]) -> tuple[str, tuple[Comparison, ...]]:
    """Return the basis of the comparison, and the comparison of each of ``workers``.

    Those without steps, as parameter servers are, are not compared.
    """
    stepping = [worker for worker in workers if worker.has_steps]
    source, comparisons = _compared(stepping)
    compared = iter(comparisons)
    return source, tuple(
        next(compared) if worker.has_steps else _UNCOMPARED._replace(clock=_clock(next(iter(stepping), worker), worker))
        for worker in workers
    )


def _compared(workers: Sequence[WorkerSteps]) -> tuple[str, list[Comparison]]:
    clocks = [_clock(workers[0], worker) for worker in workers]
    starts = [
        {step: moments.start_ns + clock.offset_ns for step, moments in worker.steps.items()} if clock else {}
        for worker, clock in zip(workers, clocks, strict=True)
    ]
    aligned = [of_worker for of_worker, clock in zip(starts, clocks, strict=True) if clock]
    common = sorted(set.intersection(*map(set, aligned))) if len(aligned) > 1 else []
    first = {step: min(of_worker[step] for of_worker in aligned) for step in common}
    last = {step: max(of_worker[step] for of_worker in aligned) for step in common}
    late_ns = [
        statistics.fmean(own[step] - first[step] for step in common) if common and own else None for own in starts
    ]
    waits = [worker.waits_ns for worker in workers if worker.waits_ns is not None]
    source = COLLECTIVES if len(waits) == len(workers) > 1 and max(waits) > 0 else STARTS if common else NOTHING
    longest_ns = max((late for late in late_ns if late is not None), default=0.0) if source == STARTS else 0.0
    if not _may_wait_for_each_other([worker.period_ns for worker in workers if worker.period_ns], longest_ns):
        return PACE, [_UNCOMPARED._replace(clock=clock) for clock in clocks]
    compared = []
    for worker, clock, own, late in zip(workers, clocks, starts, late_ns, strict=True):
        behind_ns = late if source == STARTS else None
        if source == COLLECTIVES and worker.waits_ns is not None:
            behind_ns = max(waits) - worker.waits_ns
        times_last = sum(own[step] == last[step] > first[step] for step in common) if own else 0
        compared.append(Comparison(clock, len(common) if own else 0, late, times_last, behind_ns))
    return source, compared


def _may_wait_for_each_other(periods_ns: Sequence[float], late_ns: float) -> bool:
    """Return whether workers with these periods may take their steps together.

    They may if the periods are equal, and no worker is late by more than a period. ``late_ns``: the
    mean delay of the worker that starts last.
    """
    return len(periods_ns) < 2 or (max(periods_ns) <= _EQUAL_FACTOR * min(periods_ns) and late_ns <= max(periods_ns))


def _clock(reference: WorkerSteps, worker: WorkerSteps) -> Clock | None:
    """Return the clock of ``worker``; hosts without common waits cannot be aligned."""
    if worker.host == reference.host:
        return Clock(0.0, 0.0)
    if not (worker.waits_ns and reference.waits_ns):
        return None
    ends = [{step: moments.end_ns for step, moments in each.steps.items()} for each in (reference, worker)]
    return align(*ends)
