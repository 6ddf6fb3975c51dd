"""What is recorded about steps: timed steps, what ran beside them, and traced steps."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..records import StepStart, measured_start


class TimedSteps(NamedTuple):
    """Consecutive steps of one thread that were timed together; times in ns.

    `steps`: their number; `total_ns`: sum of their durations, without the pauses between them.
    Of sampled steps only the last one was timed: `total_ns` is an estimate, and so is `start_ns`.
    `others`: the number of steps of other functions and threads before, which are numbered together
    with these.
    """

    ordinal: int
    steps: int
    start_ns: int
    total_ns: int
    is_normal: bool  # neither traced nor failed, and not a setup step
    key: int = 0  # equal for steps of the same call
    is_sampled: bool = False
    others: int = 0

    @property
    def last(self) -> int:
        """The ordinal of the last one."""
        return self.ordinal + self.steps - 1

    @property
    def measured_start(self) -> StepStart:
        """The start of the only step whose start was measured."""
        return measured_start(self.ordinal, self.steps, self.start_ns, self.total_ns, is_sampled=self.is_sampled)


class Period(NamedTuple):
    """The time from the measured start of ``steps`` to that of the next ones; times in ns.

    ``number``: the steps that begin in it. ``inside_ns``: the time within them.
    """

    first: StepStart
    steps: TimedSteps
    number: int
    inside_ns: float
    end_ns: int

    @property
    def ns(self) -> float:
        """The mean time from the start of a step to the next start."""
        return (self.end_ns - self.first.ns) / self.number

    @property
    def gap_ns(self) -> float:
        """The pauses; below 0 if the steps took less time than estimated."""
        return self.end_ns - self.first.ns - self.inside_ns

    @property
    def pauses(self) -> tuple[int, int]:
        """The interval that has the pauses. If there are several, the steps lie between them."""
        return self.first.ns + (round(self.inside_ns) if self.number == 1 else 0), self.end_ns


def periods(steps: Sequence[TimedSteps], mean_ns: float = 0.0) -> Iterator[Period]:
    """Yield the periods of the ``steps``, sorted by time, unless a step was lost in between.

    ``mean_ns``: the duration of a step, for those of which only some were timed.
    """
    for group, next_group in pairwise(steps):
        first, end = group.measured_start, next_group.measured_start
        number = end.step - next_group.others - (first.step - group.others)
        if group.is_sampled or next_group.is_sampled:
            if number > 0:
                yield Period(first, group, number, number * mean_ns, end.ns)
        elif number == group.steps:
            yield Period(first, group, number, group.total_ns, end.ns)


class OtherSpan(NamedTuple):
    """A step, evaluation or prediction that is no step of the main kind; times in ns.

    ``steps``: the number of steps that were timed together.
    """

    kind: str
    start_ns: int
    end_ns: int
    steps: int = 1


class OpExecution(NamedTuple):
    """One execution in a traced step; times in ns."""

    node: str
    op: str
    device: str  # lower case
    thread: int
    start_ns: int
    end_ns: int


class StepTrace(NamedTuple):
    """A traced step: its duration in ns, and all its executions, whose times count from its start.

    ``steps``: the number of steps that were traced together.
    """

    step: int
    duration_ns: int
    executions: tuple[OpExecution, ...]
    steps: int = 1


class Activity(NamedTuple):
    """What the job's Python did on the thread of the steps; times in ns.

    Short ones of the same name share a record with several ``entries``. ``own_ns``: the time
    without activities within this one. ``in_step``: it ran within a step.
    """

    category: str
    name: str
    start_ns: int
    end_ns: int
    own_ns: int
    entries: int
    in_step: bool


class NamedSum(NamedTuple):
    """A function or a marked part of the user's code: its total time, ns, and its calls."""

    name: str
    total_ns: int
    calls: int


class ThreadUse(NamedTuple):
    """The thread of the steps while they ran, as shares of the time.

    ``cpu``: it used a CPU; ``queued``: it waited for one; ``queued_all``: the sum of the waits of
    all threads of the process. ``is_exact``: measured for the thread; otherwise ``cpu`` is that of
    all threads of the job, at most 1, and the waits are unknown (0). ``process``: CPUs that the
    job's own process used, None if that is unknown or the job has no other process.
    """

    cpu: float
    queued: float = 0.0
    queued_all: float = 0.0
    is_exact: bool = True
    process: float | None = None
