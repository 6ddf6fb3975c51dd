"""Decides when unacked messages are sent again: those of a job, of the samples, of a spool."""

import math
import time
from typing import Final

#: Delay before unanswered messages are sent again (seconds); it doubles each time, up to the limit.
SILENCE_S: Final = 5.0
SILENCE_MAX_S: Final = 20.0
#: Delay before data is sent again after a STALL (seconds).
STALL_S: Final = 1.0
#: Minimum interval between full resends to a collector that does not know the job (seconds).
REOPEN_S: Final = 0.25
#: Interval of checks for a silent collector (seconds).
SILENCE_CHECK_S: Final = 0.5


class Resending:
    """The waits of one sender for its collector; times are monotonic, in seconds."""

    def __init__(self) -> None:
        self.last_answer_s = time.monotonic()
        self._not_before = 0.0
        self._sent_s = -math.inf
        self._is_reopening = False
        self._waiting_since = 0.0
        self._next_check_s = 0.0
        self._limit_s = SILENCE_S

    def may_send(self, now: float) -> bool:
        """Return whether anything may be sent now."""
        return now >= self._not_before

    def note_sending(self, now: float) -> None:
        """Record that messages are sent now: a REOPEN then delays the next sending."""
        self._is_reopening, self._sent_s = False, now

    def note_resending(self, now: float) -> None:
        """As `note_sending`, but only after a REOPEN: the first REOPEN then causes no delay."""
        if self._is_reopening:
            self.note_sending(now)

    def note_answered(self) -> None:
        """Record that data was stored."""
        self.last_answer_s = time.monotonic()
        self._limit_s, self._waiting_since = SILENCE_S, 0.0

    def note_stalled(self, now: float) -> None:
        """Record a STALL: nothing is sent for STALL_S."""
        self._not_before = now + STALL_S

    def note_reopened(self, now: float) -> bool:
        """Record a REOPEN: all is sent again, REOPEN_S after the last noted sending.

        Return whether this is the first REOPEN since then.
        """
        if self._is_reopening:
            return False
        self._is_reopening = True
        self._not_before = max(self._not_before, min(now, self._sent_s) + REOPEN_S)
        return True

    def restart(self) -> None:
        """Record that all is sent again, so that a silence begins anew."""
        self._waiting_since = 0.0

    def check_is_due(self, now: float) -> bool:
        """Return whether it is time to ask `is_silent` again."""
        return now >= self._next_check_s

    def is_silent(self, now: float, *, is_waiting: bool) -> bool:
        """Return whether a collector that must answer has been silent for too long.

        ``is_waiting``: whether any message is unanswered. The next silence may then be longer.
        """
        self._next_check_s = now + SILENCE_CHECK_S
        if not is_waiting:
            self._waiting_since = 0.0
        elif not self._waiting_since:
            self._waiting_since = now
        elif now > self._waiting_since + self._limit_s:
            self._limit_s, self._waiting_since = min(2 * self._limit_s, SILENCE_MAX_S), 0.0
            return True
        return False
