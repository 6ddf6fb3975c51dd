"""The collector's own statistics."""

import contextlib
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Final

from .errors import TfprofError

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
#: A store that took everything for so long is not stalled any more.
_STALL_FADES_S: Final = 5.0
#: So many tracebacks are written to the log; the first one is in the status, cut to so many characters.
_LOGGED_MAX: Final = 100
_TRACE_MAX: Final = 4_000


class SelfStats:
    """Counts since the start, and how fast rows came lately; `heard` is when an agent was last heard of (monotonic, s)."""

    def __init__(self) -> None:
        self.heard = time.monotonic()
        self.messages = 0
        self.bytes = 0
        self.stalls = 0
        self.refusals = 0
        self.failures = 0
        self._last_refusal = ""
        self._first_failure = ""
        self._stall: TfprofError | None = None
        self._stalled_at = 0.0
        self._rated = (time.monotonic(), 0)
        self._started_ns = time.time_ns()

    def stalled(self, error: TfprofError) -> None:
        """The store could not take something because of ``error``."""
        self.stalls += 1
        self._stall, self._stalled_at = error, time.monotonic()

    def refused(self, error: TfprofError) -> None:
        """A message was refused because of ``error``."""
        self.refusals += 1
        self._last_refusal = str(error)

    def failed(self, uid: int, error: Exception | str) -> None:
        """Something happened with job ``uid`` (0: with none) that should not; ``error`` may be what another process says of it."""
        self.failures += 1
        text = error if isinstance(error, str) else "".join(traceback.format_exception(error)).rstrip()
        self._first_failure = self._first_failure or f"job {uid:016x}: {text}"[:_TRACE_MAX]
        if self.failures <= _LOGGED_MAX:
            _log(f"tfprof: job {uid:016x}: {text} [internal]")

    def snapshot(self, rows: int, now: float) -> dict[str, Any]:
        """Return the status keys that are counted here; ``rows`` stored so far, ``now`` of the monotonic clock in s."""
        since, before = self._rated
        rate = (rows - before) / (now - since) if now > since else 0.0
        self._rated = (now, rows)
        if self._stall is not None and now - self._stalled_at > _STALL_FADES_S:
            self._stall = None
        return {
            "pid": os.getpid(),
            "started_ns": self._started_ns,
            "written_ns": time.time_ns(),
            "rows": rows,
            "rows_per_s": round(rate, 1),
            "messages": self.messages,
            "bytes": self.bytes,
            "stalls": self.stalls,
            "stalled": None if self._stall is None else {"slug": self._stall.slug, "text": self._stall.args[0]},
            "refusals": self.refusals,
            "last_refusal": self._last_refusal,
            "failures": self.failures,
            "first_failure": self._first_failure,
            "rss_bytes": resident(),
            "cpu_s": round(time.process_time(), 3),
        }


def _log(text: str) -> None:
    with contextlib.suppress(
        OSError, ValueError
    ):  # a full disk, or nobody who reads: that is no trouble of the job's, either
        print(text, file=sys.stderr, flush=True)


def resident() -> int:
    """Return the bytes of memory that this process occupies."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
