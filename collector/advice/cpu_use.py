"""The use of the host's CPUs while given steps ran."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from ..summaries.step_records import TimedSteps
from .evidence import Evidence, Load

#: Other processes compete for CPUs if they use at least the first share of them, and at least the
#: second share of them is busy.
OTHERS_SHARE_MIN: Final = 0.25
BUSY_SHARE_MIN: Final = 0.85


class CpuUse(NamedTuple):
    """Mean numbers of cores that the job and other processes used, and the number of CPUs.

    `child_cores`: those that further processes of the job used, if they are not in `own_cores`.
    """

    own_cores: float
    other_cores: float
    cpus: int
    child_cores: float = 0.0

    @property
    def job_cores(self) -> float:
        """The cores that all processes of the job used."""
        return self.own_cores + self.child_cores

    @property
    def competing_cores(self) -> float:
        """The cores that are not left to `own_cores`."""
        return self.other_cores + self.child_cores

    @property
    def has_competition(self) -> bool:
        """Whether other processes keep the host so busy that the job may wait for a CPU."""
        return (
            self.competing_cores >= OTHERS_SHARE_MIN * self.cpus
            and self.own_cores + self.competing_cores >= BUSY_SHARE_MIN * self.cpus
        )


def cpu_use(load: Sequence[Load], steps: Sequence[TimedSteps]) -> CpuUse | None:
    """Return the use of the CPUs while ``steps`` ran, which are sorted by time; None if unknown.

    Each interval of the load is weighted by the time of ``steps`` in it.
    """
    starts = [step.start_ns for step in steps]
    sums = [0, *accumulate(step.total_ns for step in steps)]

    def time_until(t_ns: int) -> int:
        index = bisect_right(starts, t_ns)
        return sums[index - 1] + min(t_ns - starts[index - 1], steps[index - 1].total_ns) if index else 0

    weights = [time_until(interval.end_ns) - time_until(interval.start_ns) for interval in load]
    if not sum(weights):
        return None
    own, other = (
        sum(weight * used for weight, used in zip(weights, cores, strict=True)) / sum(weights)
        for cores in ([interval.own_cores for interval in load], [interval.other_cores for interval in load])
    )
    return CpuUse(own, other, load[0].cpus)


def process_use(evidence: Evidence) -> CpuUse | None:
    """Return the use while steps ran, where `own_cores` are those of the job's own process."""
    use, thread = cpu_use(evidence.load, evidence.timed_steps), evidence.thread_use
    if use is None or thread is None or thread.process is None:
        return use
    own_cores = min(use.own_cores, thread.process)
    return use._replace(own_cores=own_cores, child_cores=use.own_cores - own_cores)


def is_due_to_host(slow: CpuUse | None, normal: CpuUse | None) -> bool:
    """Return whether other processes are the likely cause of slow steps.

    They must compete for CPUs during slow steps, and must not have done so during normal ones. On a
    host that is always busy, a job that works less leaves more time to others, so their load alone
    proves nothing there.
    """
    return slow is not None and slow.has_competition and normal is not None and not normal.has_competition
