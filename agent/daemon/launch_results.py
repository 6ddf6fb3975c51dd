"""Reports the results of each launch to its launcher, until all data is stored."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from ...formats import runtime_dir
from .. import announcements, launches, processes
from ..launches import Launch, Result
from .job import Job
from .refusals import Refusal


class LaunchResults:
    """The launches of an instance: the running ones and those that await their result."""

    def __init__(self, instance_dir: str) -> None:
        self._instance_dir = instance_dir
        self._launches: dict[int, Launch] = {}
        self._scans_at_end: dict[int, int] = {}
        self._closed_jobs: dict[int, list[dict[str, Any]]] = {}
        self._complete_launches: set[int] = set()
        self._written_results: dict[int, Result] = {}
        self._changed_ns = -1  # the folder of launches when it was read; -1: it may have changed since

    def refresh_if_changed(self, scans: int) -> bool:
        """Do `refresh` if a description was added or replaced; OSError if the folder is gone."""
        changed_ns = os.stat(os.path.join(self._instance_dir, runtime_dir.LAUNCHES)).st_mtime_ns
        if changed_ns == self._changed_ns:
            return False
        is_settled = abs(time.time_ns() - changed_ns) > announcements.TIMESTAMP_LAG_NS
        self._changed_ns = changed_ns if is_settled else -1
        return self.refresh(scans)

    def refresh(self, scans: int) -> bool:
        """Read descriptions that may have changed; return whether a launch has ended meanwhile.

        ``scans`` is the number of scans so far.
        """
        has_ended = False
        numbers = set(launches.list_launches(self._instance_dir))
        self._launches = {number: launch for number, launch in self._launches.items() if number in numbers}
        self._complete_launches &= numbers
        for number in numbers:
            earlier_launch = self._launches.get(number)
            if earlier_launch is not None and earlier_launch.ended_ns:
                continue
            launch = launches.read(self._instance_dir, number)
            if launch is None:
                continue
            self._launches[number] = launch
            if launch.ended_ns and number not in self._complete_launches:
                has_ended = True
                self._take_over(number, scans)
        return has_ended

    def _take_over(self, number: int, scans: int) -> None:
        """Continue with the result that an earlier agent wrote, if there is one."""
        earlier_result = launches.read_result(self._instance_dir, number)
        if earlier_result is not None and _is_final(earlier_result):
            self._complete_launches.add(number)
            return
        self._scans_at_end[number] = scans
        if earlier_result is None:
            return
        closed_uids = {job["uid"] for job in self._closed_jobs.get(number, [])}
        closed_jobs = [
            job for job in earlier_result.jobs if job["state"] != "running" and job["uid"] not in closed_uids
        ]
        self._closed_jobs[number] = closed_jobs + self._closed_jobs.get(number, [])

    @property
    def living_launches(self) -> set[int]:
        """The launches whose launcher still runs."""
        return {
            number
            for number, launch in self._launches.items()
            if not launch.ended_ns and processes.ran_at(launch.pid, launch.started_ns)
        }

    def wants_scan(self, scans: int) -> bool:
        """Whether an ended launch still needs a scan for remaining channels."""
        return any(scans_at_end >= scans for scans_at_end in self._scans_at_end.values())

    def note_closed(self, job: Job) -> None:
        """Record a job whose end is stored."""
        self._closed_jobs.setdefault(job.launch, []).append(job.summary())

    def note_delivered(self) -> None:
        """Record that everything in the spool is stored."""
        for job in [job for jobs in self._closed_jobs.values() for job in jobs if job.get("spooled")]:
            job |= {"spooled": False, "acked": job["records"]}

    def write(
        self,
        jobs: Iterable[Job],
        refusals: Iterable[Refusal],
        stall: dict[str, str] | None,
        scans: int,
        awaits: Callable[[int], bool],
    ) -> None:
        """Write the result of every ended launch that is not complete.

        ``stall`` is the reason why the collector stores nothing, None while it takes the spool.
        ``awaits`` tells whether channels of a launch are announced and not yet found.
        """
        incomplete_launches = [number for number in self._scans_at_end if number not in self._complete_launches]
        if not incomplete_launches:
            return
        jobs, refusals = list(jobs), list(refusals)
        for number in incomplete_launches:
            launch_jobs = [job for job in jobs if job.launch == number]
            is_searched = scans > self._scans_at_end[number] and not awaits(number)
            result = self._result(number, launch_jobs, refusals, stall, is_searched)
            if result != self._written_results.get(number):
                launches.write_result(self._instance_dir, result)
                self._written_results[number] = result
            if _is_final(result):
                self._forget(number)

    def _result(
        self, number: int, jobs: list[Job], refusals: list[Refusal], stall: dict[str, str] | None, is_searched: bool
    ) -> Result:
        ended_jobs = [job for job in jobs if not job.is_running]
        summaries = self._closed_jobs.get(number, []) + [job.summary() for job in jobs]
        stalls = [job.outbox.stall for job in ended_jobs if job.outbox.stall]
        is_being_delivered = stall is None and any(job.get("spooled") for job in summaries)
        return Result(
            number,
            complete=is_searched and not ended_jobs and not is_being_delivered,
            progress=sum(job["acked"] for job in summaries) + sum(job.outbox.progress for job in ended_jobs),
            jobs=summaries,
            refused=[_reason(refusal) for refusal in refusals if refusal.launch == number],
            stall=stall or (stalls[0] if stalls else None),
        )

    def _forget(self, number: int) -> None:
        self._complete_launches.add(number)
        self._written_results.pop(number, None)
        self._closed_jobs.pop(number, None)
        self._scans_at_end.pop(number)


def _reason(refusal: Refusal) -> dict[str, Any]:
    return {"pid": refusal.pid, "slug": refusal.slug, "text": refusal.text, "times": refusal.times}


def _is_final(result: Result) -> bool:
    """Whether the result will not change any more."""
    return result.complete and all(job["state"] != "running" for job in result.jobs)
