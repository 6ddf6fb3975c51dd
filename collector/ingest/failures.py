"""Internal errors in the work for jobs: counted, reported, and at some number a quarantine."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from ...formats.ids import hex_id
from ..errors import FormatError

#: Internal errors after which a job is quarantined.
FAILURES_MAX: Final = 20
#: Callback with the job's uid, and the exception or the worker's traceback.
FailureCallback = Callable[[int, Exception | str], None]


class QuarantinedError(FormatError):
    """A message of a quarantined job."""

    slug = "quarantined"


class Failures:
    """The internal errors of each job, of which ``report`` gets every one.

    `quarantined` maps the uid of a quarantined job to its last error. The uid is 0 for an error in
    a sample of a host.
    """

    def __init__(self, report: FailureCallback) -> None:
        self.report_failure = report
        self.quarantined: dict[int, str] = {}
        self._counts: Counter[int] = Counter()
        self._last: dict[int, str] = {}

    def count_failure(self, uid: int, error: Exception | str) -> None:
        """Count an error of job ``uid`` and report it."""
        self._counts[uid] += 1
        self._last[uid] = _one_line(error)
        self.report_failure(uid, error)

    def forget(self, uid: int) -> None:
        """Forget the errors of a job that has ended."""
        self._counts.pop(uid, None)
        self._last.pop(uid, None)

    def quarantine_if_due(self, uid: int) -> bool:
        """Quarantine job ``uid`` if it has too many errors; return whether that is new."""
        if self._counts[uid] < FAILURES_MAX or uid in self.quarantined:
            return False
        self.quarantined[uid] = self._last.pop(uid)
        return True

    def check(self, uid: int) -> None:
        """Raise QuarantinedError if job ``uid`` is in quarantine."""
        if uid in self.quarantined:
            raise QuarantinedError(f"job {hex_id(uid)} is in quarantine: {self.quarantined[uid]}")


def _one_line(error: Exception | str) -> str:
    """Return the last line of a traceback, or the exception in one line."""
    if isinstance(error, str):
        return (error.splitlines() or [""])[-1]
    return f"{type(error).__name__}: {error}"
