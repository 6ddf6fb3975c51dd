"""Raises alerts about the open jobs of a collector.

A slowdown that the load of the host explains raises no alert.
"""

from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import Any, Final

from ...formats.layout import SECOND_NS
from ..records import Span
from .alert import Alert
from .job_watch import JobWatch, SeriesShift, step_alert
from .load import CpuSeconds
from .step_series import Shift

#: Minimum interval between evaluations (ns).
INTERVAL_NS: Final = SECOND_NS
#: A host is saturated when this share of its processors is busy.
SATURATED_SHARE: Final = 0.8
#: Minimum slowdown factor if the host is saturated, or if the other jobs are slower, too. The
#: slowdown is first divided by that of the other jobs.
SATURATED_FACTOR: Final = 1.5
#: Minimum duration of a shift on a saturated host (ns).
SATURATED_NS: Final = 8 * SECOND_NS
#: A job counts as doing more work if its processor time per step grows by this factor.
CPU_GROWTH_MIN: Final = 1.5
#: The other jobs count as slower from this slowdown factor on.
_OTHERS_SLOWER_MIN: Final = 1.1


class Detector:
    """The watched jobs by uid, and the loads of their hosts."""

    def __init__(self) -> None:
        self._jobs: dict[int, JobWatch] = {}
        self._hosts: dict[str, tuple[int, CpuSeconds]] = {}  # by host: number of processors, and their load
        self._due_ns = 0

    def open(self, uid: int, host: str, training: str) -> None:
        """Watch job ``uid`` on ``host``; a job that is already watched keeps its state."""
        if uid not in self._jobs:
            self._jobs[uid] = JobWatch(host, training)

    def close(self, uid: int) -> None:
        """Stop watching job ``uid``."""
        job = self._jobs.pop(uid, None)
        if job is not None and all(other.host != job.host for other in self._jobs.values()):
            self._hosts.pop(job.host, None)

    def add_spans(self, uid: int, entries: Iterable[Span], offset: int, now_ns: int) -> None:
        """Add span entries of job ``uid``.

        ``offset`` converts their monotonic times to real times (ns).
        """
        if uid in self._jobs:
            self._jobs[uid].add_spans(entries, offset, now_ns)

    def add_sample(self, uid: int, t_ns: int, values: Mapping[str, Any]) -> None:
        """Add a sample of the processes of job ``uid``."""
        if uid in self._jobs:
            self._jobs[uid].add_sample(t_ns, values)

    def add_counters(self, uid: int, values: Mapping[str, Any], now_ns: int) -> None:
        """Add the counters of job ``uid``."""
        if uid in self._jobs:
            self._jobs[uid].add_counters(values, now_ns)

    def add_host_sample(self, host: str, t_ns: int, values: Mapping[str, Any]) -> None:
        """Add a sample of ``host``."""
        if all(job.host != host for job in self._jobs.values()):
            return
        _, load = self._hosts.get(host, (0, CpuSeconds()))
        load.add(t_ns, values.get("cpu_busy_s") or 0.0)
        self._hosts[host] = max(1, values.get("cpus") or 1), load

    def due_jobs(self, now_ns: int) -> list[int]:
        """Return the uids of the jobs to evaluate now: all of them, at most once in INTERVAL_NS.

        After the clock was set back, all jobs are watched anew, since their earlier times are in
        the future.
        """
        if now_ns < self._due_ns - INTERVAL_NS:
            self._jobs = {uid: JobWatch(job.host, job.training) for uid, job in self._jobs.items()}
            self._hosts.clear()
        elif now_ns < self._due_ns:
            return []
        self._due_ns = now_ns + INTERVAL_NS
        return list(self._jobs)

    def alerts(self, uid: int, now_ns: int) -> Iterator[Alert]:
        """Yield the new alerts of job ``uid``."""
        job = self._jobs[uid]
        yield from job.alerts(now_ns)
        for found in job.shifts(now_ns):
            if self._has_own_cause(job, found, now_ns):
                job.restart()  # shifts of its other series have the same cause
                yield step_alert(found.slug, now_ns, found.key, found.shift)
                return

    def _has_own_cause(self, job: JobWatch, found: SeriesShift, now_ns: int) -> bool:
        """Return whether something other than the load of the host causes the shift ``found``.

        It has another cause if the other jobs are not slower. If they are slower, too, the slowdown
        of this job is divided by theirs. The steps must then still be slower by SATURATED_FACTOR.
        In addition, the fastest steps must be slower by that factor, or the processor time per step
        must have grown by CPU_GROWTH_MIN.

        On a saturated host, the shift must always last SATURATED_NS and reach SATURATED_FACTOR. If
        there are no other jobs on such a host, the processor time per step must also have grown by
        CPU_GROWTH_MIN.
        """
        shift = found.shift
        is_saturated = self._is_saturated(job.host, shift.since_ns)
        if is_saturated and now_ns - shift.since_ns < SATURATED_NS:
            return False
        slowdowns = list(self._slowdowns_of_others(job, shift, all_trainings=is_saturated))
        slowdown = max(1.0, median(slowdowns)) if slowdowns else 1.0
        others_unaffected = slowdown < _OTHERS_SLOWER_MIN and (bool(slowdowns) or not is_saturated)
        if others_unaffected and not is_saturated:
            return True
        if shift.now_ns / shift.before_ns / slowdown < SATURATED_FACTOR:
            return False
        fastest_factor = found.series.median_min_ns(shift.since_ns) / shift.before_ns
        fastest_steps_are_slower = bool(slowdowns) and fastest_factor / slowdown >= SATURATED_FACTOR
        return others_unaffected or fastest_steps_are_slower or job.cpu_growth(found.series, shift) >= CPU_GROWTH_MIN

    def _is_saturated(self, host: str, since_ns: int) -> bool:
        cpus, load = self._hosts.get(host, (1, None))
        busy = load.cores(since_ns) if load is not None else None
        return busy is not None and busy >= SATURATED_SHARE * cpus

    def _slowdowns_of_others(self, job: JobWatch, shift: Shift, *, all_trainings: bool) -> Iterator[float]:
        """Yield the slowdown factors of the other jobs on the host at ``shift``.

        Unless ``all_trainings``, leave out jobs of its training, which may wait for each other.
        """
        for other in self._jobs.values():
            if other is not job and other.host == job.host and (all_trainings or other.training != job.training):
                slowdown = other.slowdown(shift)
                if slowdown is not None:
                    yield slowdown
