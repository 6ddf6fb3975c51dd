"""The collector's own statistics."""

import os
import time
import traceback
from typing import Any, Final

from ..commands import daemons
from ..commands.streams import ERROR, log
from ..formats.ids import hex_id
from .errors import TfprofError

#: Time without a StoreError after which a store no longer counts as stalled (seconds).
_STALL_EXPIRES_S: Final = 5.0
#: Maximum number of tracebacks in the log; maximum characters of the first one in the status.
_LOGGED_MAX: Final = 100
_TRACEBACK_MAX: Final = 4_000


class CollectorStats:
    """Counters since the start, and the recent rate of rows.

    `last_message_s`: time of the last message from an agent or a client (monotonic clock, seconds).
    """

    def __init__(self) -> None:
        self.last_message_s = time.monotonic()
        self.messages = 0
        self.bytes = 0
        self.stalls = 0
        self.refusals = 0
        self.failures = 0
        self._last_refusal = ""
        self._first_failure = ""
        self._stall: TfprofError | None = None
        self._stall_time_s = 0.0
        self._rate_base = (time.monotonic(), 0)
        self._started_ns = time.time_ns()

    def count_stall(self, error: TfprofError) -> None:
        """Count a StoreError."""
        self.stalls += 1
        self._stall, self._stall_time_s = error, time.monotonic()

    def count_refusal(self, error: TfprofError) -> None:
        """Count a refused message."""
        self.refusals += 1
        self._last_refusal = str(error)

    def count_failure(self, uid: int, error: Exception | str) -> None:
        """Count and log an internal error in job ``uid`` (0: none).

        ``error`` is an exception, or the text of another process's traceback.
        """
        self.failures += 1
        text = error if isinstance(error, str) else "".join(traceback.format_exception(error)).rstrip()
        prefix = f"job {hex_id(uid)}: " if uid else ""
        self._first_failure = self._first_failure or prefix + text[-_TRACEBACK_MAX:]
        if self.failures <= _LOGGED_MAX:
            log(f"tfprof: {prefix}{text} [internal]", level=ERROR)

    def snapshot(self, rows: int, now: float) -> dict[str, Any]:
        """Return these statistics as the entries of a status file.

        ``rows``: number of rows stored so far; ``now``: the monotonic clock in seconds.
        """
        since_s, rows_before = self._rate_base
        rate = (rows - rows_before) / (now - since_s) if now > since_s else 0.0
        self._rate_base = (now, rows)
        if self._stall is not None and now - self._stall_time_s > _STALL_EXPIRES_S:
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
            "rss_bytes": daemons.resident_bytes(),
            "cpu_s": round(time.process_time(), 3),
        }
