"""Catches internal errors of the alert detector.

After an error about a job, the job gets no more alerts. Its data is stored as before.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..alerts.alert import Alert
from ..alerts.detector import Detector
from ..records import Span


class GuardedDetector:
    """A wrapper of the detector that catches its errors.

    After an error about a job, the job is no longer watched. ``report_failure`` is called with the
    job's uid and the exception. The uid is 0 for an error in a sample of a host.
    """

    def __init__(self, report_failure: Callable[[int, Exception], None]) -> None:
        self._detector = Detector()
        self._report_failure = report_failure

    def open(self, uid: int, host: str, name: str) -> None:
        """Watch job ``uid`` on ``host``."""
        self._detector.open(uid, host, name)

    def close(self, uid: int) -> None:
        """Stop watching job ``uid``."""
        self._detector.close(uid)

    def add_spans(self, uid: int, spans: Iterable[Span], offset: int, now_ns: int) -> None:
        """Add stored span entries of job ``uid``.

        ``offset`` converts monotonic times to real times (ns).
        """
        self._guarded(uid, self._detector.add_spans, uid, spans, offset, now_ns)

    def add_sample(self, uid: int, t_ns: int, values: Mapping[str, Any]) -> None:
        """Add a sample of job ``uid``."""
        self._guarded(uid, self._detector.add_sample, uid, t_ns, values)

    def add_counters(self, uid: int, values: Mapping[str, Any], now_ns: int) -> None:
        """Add the counters of job ``uid``."""
        self._guarded(uid, self._detector.add_counters, uid, values, now_ns)

    def add_host_sample(self, host: str, t_ns: int, values: Mapping[str, Any]) -> None:
        """Add a sample of ``host``."""
        self._guarded(0, self._detector.add_host_sample, host, t_ns, values)

    def alerts(self, now_ns: int) -> list[tuple[int, Alert]]:
        """Return the new alerts, each with the uid of its job."""
        new_alerts: list[tuple[int, Alert]] = []
        for uid in self._detector.due_jobs(now_ns):
            self._guarded(uid, self._add_alerts, uid, now_ns, new_alerts)
        return new_alerts

    def _add_alerts(self, uid: int, now_ns: int, new_alerts: list[tuple[int, Alert]]) -> None:
        new_alerts += [(uid, alert) for alert in self._detector.alerts(uid, now_ns)]

    def _guarded(self, uid: int, action: Callable[..., object], *arguments: object) -> None:
        try:
            action(*arguments)
        except Exception as error:  # noqa: BLE001  # storing does not depend on the detector
            self._detector.close(uid)
            self._report_failure(uid, error)
