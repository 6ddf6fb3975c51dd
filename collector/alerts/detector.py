"""Raises alerts about the open jobs of a collector; a change of the load of a host alone raises none."""

from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any, Final

from ..records import Span
from .alert import SLOWER, Alert
from .job_watch import JobWatch, SeriesKey
from .load import CpuSeconds
from .step_series import NS, Shift

#: Minimum interval between evaluations (ns).
INTERVAL_NS: Final = NS
#: A host is saturated when this share of its processors is busy.
SATURATED: Final = 0.8
#: Minimum slowdown factor on a saturated host, relative to the slowdown of the other jobs.
SATURATED_FACTOR: Final = 1.5
#: Minimum duration of a shift on a saturated host (ns).
SATURATED_NS: Final = 8 * NS
#: Minimum growth factor of the processor time per step if the job itself does more work.
OWN_WORK: Final = 1.5
#: Slowdown factor of the other jobs below which they count as not slower.
_UNCONCERNED: Final = 1.1


class Detector:
    """The watched jobs by uid, and the loads of their hosts."""

    def __init__(self) -> None:
        self._jobs: dict[int, JobWatch] = {}
        self._hosts: dict[str, tuple[int, CpuSeconds]] = {}  # processors, load
        self._due_ns = 0

    def open(self, uid: int, host: str) -> None:
        """Watch job ``uid`` on ``host``; a job that is already watched keeps its state."""
        if uid not in self._jobs:
            self._jobs[uid] = JobWatch(host)

    def close(self, uid: int) -> None:
        """Stop watching job ``uid``."""
        job = self._jobs.pop(uid, None)
        if job is not None and all(other.host != job.host for other in self._jobs.values()):
            self._hosts.pop(job.host, None)

    def spans(self, uid: int, entries: Iterable[Span], offset: int, now_ns: int) -> None:
        """Add span entries of job ``uid``; ``offset`` converts their monotonic times to real times (ns)."""
        if uid in self._jobs:
            self._jobs[uid].spans(entries, offset, now_ns)

    def sample(self, uid: int, t_ns: int, values: Mapping[str, Any]) -> None:
        """Add a sample of the processes of job ``uid``."""
        if uid in self._jobs:
            self._jobs[uid].sample(t_ns, values)

    def counters(self, uid: int, values: Mapping[str, Any], now_ns: int) -> None:
        """Add the counters of job ``uid``."""
        if uid in self._jobs:
            self._jobs[uid].counters(values, now_ns)

    def sample_host(self, host: str, t_ns: int, values: Mapping[str, Any]) -> None:
        """Add a sample of ``host``."""
        if all(job.host != host for job in self._jobs.values()):
            return
        _, load = self._hosts.get(host, (0, CpuSeconds()))
        load.add(t_ns, values.get("cpu_busy_s") or 0.0)
        self._hosts[host] = max(1, values.get("cpus") or 1), load

    def alerts(self, now_ns: int) -> Iterator[tuple[int, Alert]]:
        """Yield (uid, alert) of each new alert; the jobs are evaluated at most once in INTERVAL_NS."""
        if now_ns < self._due_ns:
            return
        self._due_ns = now_ns + INTERVAL_NS
        for uid, job in list(self._jobs.items()):
            for alert in job.alerts(now_ns):
                yield uid, alert
            for which, shift in job.shifts(now_ns):
                if self._is_own(job, shift, now_ns):
                    job.restart()  # shifts of its other series have the same cause
                    yield uid, _slower(now_ns, which, shift)
                    break

    def _is_own(self, job: JobWatch, shift: Shift, now_ns: int) -> bool:
        """Whether ``shift`` has another cause than the load of the host.

        On a saturated host, the shift is the job's own if its steps need more processor time, or if
        the other jobs are not slower.
        """
        factor = shift.now_ns / shift.before_ns
        cpus, load = self._hosts.get(job.host, (1, None))
        busy = load.cores(shift.since_ns) if load is not None else None
        if load is None or busy is None or busy < SATURATED * cpus:
            return True
        if now_ns - shift.since_ns < SATURATED_NS:
            return False
        others = [
            change
            for other in self._jobs.values()
            if other is not job and other.host == job.host and (change := other.change(shift)) is not None
        ]
        change = max(1.0, median(others)) if others else 1.0
        is_unconcerned = bool(others) and change < _UNCONCERNED
        return factor / change >= SATURATED_FACTOR and (is_unconcerned or _work(job, shift) >= OWN_WORK)


def _slower(now_ns: int, which: SeriesKey, shift: Shift) -> Alert:
    return Alert(now_ns, shift.since_ns, SLOWER, which.kind, which.key, shift.step, shift.before_ns, shift.now_ns)


def _work(job: JobWatch, shift: Shift) -> float:
    """Return the growth factor of the processor time per step at ``shift``; 0 if it is unknown."""
    before, now = job.load.cores(shift.from_ns, shift.since_ns), job.load.cores(shift.since_ns)
    return now * shift.now_ns / (before * shift.before_ns) if now and before else 0.0
