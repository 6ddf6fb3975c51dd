"""The periodic work for open jobs: the store's own, counters, alerts, and the figures of now."""

import time

from ...commands.streams import WARNING, log
from ..alerts.alert import Alert
from ..errors import StoreError
from ..store.writer import LocalStoreWriter
from .failures import Failures
from .guarded_detector import GuardedDetector
from .jobs import OpenJobs


class Upkeep:
    """What the collector does for open jobs from time to time, without a message."""

    def __init__(self, store: LocalStoreWriter, jobs: OpenJobs, failures: Failures, detector: GuardedDetector) -> None:
        self._store = store
        self._jobs = jobs
        self._failures = failures
        self._detector = detector

    def tick(self, now: float) -> None:
        """Run the store's periodic work (store.writer) at monotonic time ``now``.

        If the store was removed or moved, it is created again first.
        """

        def count_failure(uid: int, error: Exception) -> None:
            self._failures.count_failure(uid, error)
            self._jobs.update(uid)

        if self._store.is_gone:
            self._renew()
        self._store.tick(now, count_failure)

    def _renew(self) -> None:
        """Recreate a store that was removed or moved; agents send unacked messages again."""
        self._store.renew()
        log(
            f"tfprof: {self._store.path} was removed or moved away, and is created again [store-removed]", level=WARNING
        )
        for writer in self._store.lost_hosts:
            self._store.forget(writer)
        for uid in list(self._jobs.open):
            self._jobs.drop_if_removed(uid)

    def hand_over_counters(self, jobs_max: int) -> None:
        """Pass new counters of at most ``jobs_max`` jobs to the store, longest waiting first.

        The store replaces one file per job. The more jobs there are, the less often a job's file is
        replaced.
        """
        jobs = self._jobs.open
        for uid in list(jobs):
            if jobs_max <= 0:
                return
            if jobs[uid].appender.hand_over_counters():
                jobs[uid] = jobs.pop(uid)
                jobs_max -= 1

    def store_alerts(self) -> list[tuple[int, Alert]]:
        """Store the new alerts, and return them with the uids of their jobs."""
        jobs = self._jobs.open
        new_alerts = [(uid, alert) for uid, alert in self._detector.alerts(time.time_ns()) if uid in jobs]
        for uid, alert in new_alerts:
            try:
                jobs[uid].appender.alert(alert)
            except StoreError:  # the job keeps the alert
                pass
            except Exception as error:  # noqa: BLE001  # the failure stays within this job
                self._failures.count_failure(uid, error)
        return new_alerts

    def write_live(self, path: str, now: float) -> None:
        """Write the figures of the running jobs to ``path`` if due; OSError if that fails."""
        self._detector.write_live(path, str(self._store.collector["id"]), now)
