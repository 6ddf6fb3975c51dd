"""Compares the workers of a distributed job: who arrives last, and who is waited for."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

#: The basis of the order of workers: their waits for each other in traced steps, or the starts of
#: their steps.
COLLECTIVES, STARTS, NOTHING = "collectives", "step starts", "none"
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
    workers in a traced step, None without a traced step.
    """

    host: str
    steps: Mapping[int, Moments]
    waits_ns: float | None


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


def align(reference: Mapping[int, int], ends: Mapping[int, int]) -> Clock | None:
    """Return the clock of a worker whose steps end when those of the reference end.

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
    """Return the basis of the comparison, and the comparison of each of ``workers``."""
    clocks = tuple(_clock(workers[0], worker) for worker in workers)
    starts = [
        {step: moments.start_ns + clock.offset_ns for step, moments in worker.steps.items()}
        for worker, clock in zip(workers, clocks, strict=True)
        if clock is not None
    ]
    common = sorted(set.intersection(*(set(of_worker) for of_worker in starts))) if len(starts) > 1 else []
    first = {step: min(of_worker[step] for of_worker in starts) for step in common}
    last = {step: max(of_worker[step] for of_worker in starts) for step in common}
    waits = [worker.waits_ns for worker in workers if worker.waits_ns is not None]
    source = COLLECTIVES if len(waits) == len(workers) > 1 and max(waits) > 0 else STARTS if common else NOTHING
    compared, aligned = [], iter(starts)
    for worker, clock in zip(workers, clocks, strict=True):
        own = next(aligned) if clock is not None else {}
        late_ns = statistics.fmean(own[step] - first[step] for step in common) if common and own else None
        behind_ns = late_ns if source == STARTS else None
        if source == COLLECTIVES and worker.waits_ns is not None:
            behind_ns = max(waits) - worker.waits_ns
        times_last = sum(own[step] == last[step] > first[step] for step in common) if own else 0
        compared.append(Comparison(clock, len(common) if own else 0, late_ns, times_last, behind_ns))
    return source, tuple(compared)


def _clock(reference: WorkerSteps, worker: WorkerSteps) -> Clock | None:
    """Return the clock of ``worker``; hosts without common waits cannot be aligned."""
    if worker.host == reference.host:
        return Clock(0.0, 0.0)
    if not (worker.waits_ns and reference.waits_ns):
        return None
    ends = [{step: moments.end_ns for step, moments in each.steps.items()} for each in (reference, worker)]
    return align(*ends)
