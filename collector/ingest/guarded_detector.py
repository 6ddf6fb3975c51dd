"""Catches internal errors of the alert detector, and of the figures of running jobs.

After an error about a job, the job gets no more of both. Its data is stored as before.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from ..alerts.alert import Alert
from ..alerts.detector import Detector
from ..records import Span
from .live_jobs import LiveJobs


class GuardedDetector:
    """A wrapper of the detector and of the figures of running jobs that catches their errors.

    After an error about a job, the job is no longer watched. ``report_failure`` is called with the
    job's uid and the exception. The uid is 0 for an error in a sample of a host.
    """

    def __init__(self, report_failure: Callable[[int, Exception], None]) -> None:
        self._detector = Detector()
        self._live = LiveJobs()
        self._report_failure = report_failure

    def open(self, uid: int, host: str, training: str, *, has_rows: bool = False) -> None:
        """Watch job ``uid`` on ``host``; ``has_rows``: whether rows of it are stored."""
        self._detector.open(uid, host, training)
        self._live.open(uid, has_rows=has_rows)

    def close(self, uid: int) -> None:
        """Stop watching job ``uid``."""
        self._detector.close(uid)
        self._live.close(uid)

    def write_live(self, path: str, collector: str, now: float) -> None:
        """Write the figures of the running jobs, as `LiveJobs.write_if_due`."""
        self._live.write_if_due(path, collector, now)

    def add_names(self, uid: int, names: pa.Table) -> None:
        """Add stored names of job ``uid``."""
        self._guarded(uid, self._live.add_names, uid, names)

    def add_spans(self, uid: int, spans: Iterable[Span], offset: int, now_ns: int) -> None:
        """Add stored span entries of job ``uid``.

        ``offset`` converts monotonic times to real times (ns).
        """
        self._guarded(uid, self._detector.add_spans, uid, spans, offset, now_ns)
        self._guarded(uid, self._live.add_spans, uid, spans, offset)

    def add_sample(self, uid: int, t_ns: int, values: Mapping[str, Any]) -> None:
        """Add a sample of job ``uid``."""
        self._guarded(uid, self._detector.add_sample, uid, t_ns, values)
        self._guarded(uid, self._live.add_sample, uid, t_ns, values)

    def add_counters(self, uid: int, values: Mapping[str, Any], now_ns: int) -> None:
        """Add the counters of job ``uid``."""
        self._guarded(uid, self._detector.add_counters, uid, values, now_ns)

    def add_host_sample(self, host: str, t_ns: int, values: Mapping[str, Any]) -> None:
        """Add a sample of ``host``."""
        self._guarded(0, self._detector.add_host_sample, host, t_ns, values)
        self._guarded(0, self._live.add_host_sample, host, t_ns, values)

    def alerts(self, now_ns: int) -> list[tuple[int, Alert]]:
        """Return the new alerts, each with the uid of its job."""
        new_alerts: list[tuple[int, Alert]] = []
        for uid in self._detector.due_jobs(now_ns):
            self._guarded(uid, self._add_alerts, uid, now_ns, new_alerts)
        return new_alerts

    def _add_alerts(self, uid: int, now_ns: int, new_alerts: list[tuple[int, Alert]]) -> None:
        for alert in self._detector.alerts(uid, now_ns):
            new_alerts.append((uid, alert))
            self._live.add_alert(uid, alert.found_ns, alert.slug)

    def _guarded(self, uid: int, action: Callable[..., object], *arguments: object) -> None:
        try:
            action(*arguments)
        except Exception as error:  # noqa: BLE001  # storing does not depend on the detector
            self.close(uid)
            self._report_failure(uid, error)
