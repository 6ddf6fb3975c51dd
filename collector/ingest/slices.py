"""Stores the waiting records of jobs in slices, so that no job waits for all of another."""

import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from ...formats import wire
from ...formats.wire import Head
from ..errors import StoreError
from .failures import Failures
from .jobs import OpenJobs

#: Poll interval while a worker process runs (milliseconds).
_WORKER_POLL_MS: Final = 20


class JobAnswers(NamedTuple):
    """Answers about job ``uid`` after its records were stored, or the error of storing them."""

    uid: int
    answers: list[Head] | StoreError


class Slices:
    """The work that is left of ``jobs``, a slice of each busy job in turn."""

    def __init__(self, jobs: OpenJobs, failures: Failures) -> None:
        self._jobs = jobs
        self._failures = failures

    @property
    def lag_s(self) -> float:
        """Largest delay in seconds from the end of a step until it was stored.

        Only the last stored record of each open job counts.
        """
        return max((job.appender.lag_s for job in self._jobs.open.values()), default=0.0)

    @property
    def is_waiting(self) -> bool:
        """Whether any job has records or a CLOSE that wait to be stored."""
        return any(job.is_busy for job in self._jobs.open.values())

    def poll_timeout_ms(self, timeout_max_ms: int) -> int:
        """Return the poll timeout before the next `work`, at most ``timeout_max_ms``."""
        if not self._jobs.busy:
            return timeout_max_ms
        is_ready = any(job.is_ready for uid in self._jobs.busy if (job := self._jobs.open.get(uid)))
        return 0 if is_ready else min(timeout_max_ms, _WORKER_POLL_MS)

    def retry(self) -> Iterator[JobAnswers]:
        """Append again the rows of failed appends.

        Yield REOPEN for jobs whose folder was removed.
        """
        for uid in [uid for uid, job in self._jobs.open.items() if job.appender.is_stalled]:
            try:
                self._jobs.open[uid].appender.retry()
            except StoreError:  # reported at the first attempt, and again when the agent repeats the message
                if self._jobs.drop_if_removed(uid):
                    yield JobAnswers(uid, [Head(wire.REOPEN, uid)])
                continue
            except Exception as error:  # noqa: BLE001  # the failure stays within this job
                self._failures.count_failure(uid, error)
            self._jobs.update(uid)

    def work(self, seconds: float) -> Iterator[JobAnswers]:
        """Store a slice of each busy job in turn, for about ``seconds``.

        Yield the acks of stored records, or the StoreError that prevented storing.
        """
        deadline = time.monotonic() + seconds
        for uid in list(self._jobs.busy):
            if time.monotonic() >= deadline:
                return
            self._jobs.busy.move_to_end(uid)
            yield from self.store(uid)

    def store(self, uid: int) -> Iterator[JobAnswers]:
        """Store a slice of job ``uid``; yield as `work`."""
        job = self._jobs.open.get(uid)
        if job is None:
            return
        answers: list[Head] = []
        try:
            answers = job.store_slice()
        except StoreError as error:
            self._jobs.busy.pop(uid, None)
            yield JobAnswers(uid, [Head(wire.REOPEN, uid)] if self._jobs.drop_if_removed(uid) else error)
            return
        except Exception as error:  # noqa: BLE001  # the failure stays within this job
            self._failures.count_failure(uid, error)
        self._jobs.update(uid)
        if answers:
            yield JobAnswers(uid, answers)

    def close(self) -> None:
        """Discard the waiting records.

        They are not acked, so the next collector receives them again.
        """
        for job in self._jobs.open.values():
            job.drop()
