"""Sequence numbers of a job's messages of one type: detects repeated and missing messages."""

from typing import Final, NamedTuple

#: Time for which messages after a stalled one wait for it (seconds). The agent sends a stalled
#: message again after a second.
HOLD_S: Final = 5.0
#: Maximum number of messages after a gap that are remembered. The agent has fewer in flight.
_DOUBTFUL_MAX: Final = 4096


class SequenceResult(NamedTuple):
    """Result for a message: its first new number, and the count of lost numbers before it.

    ``first_new`` is 0 if all numbers are repeated. ``is_after_gap``: the message follows a gap that
    the agent may still fill. ``is_held``: the agent fills it without being asked.
    """

    first_new: int = 0
    lost: int = 0
    is_after_gap: bool = False
    is_held: bool = False


class SequenceTracker:
    """The numbers received so far; `last` is the highest. Times are seconds of a monotonic clock.

    A message after a gap is doubtful the first time: the missing messages may have been refused
    while the store was full, and then the agent sends them again. The agent sends in order, from
    the lowest unacked number, so the missing messages are lost if the same gap appears again.
    Several messages may be in flight, so each of them may be doubtful.
    """

    def __init__(self, last: int) -> None:
        self.last = last
        self._doubtful_firsts: set[int] = set()
        self._held_until_s = 0.0

    def note_stalled(self, now: float) -> None:
        """Record that a message was stalled: the agent sends it again, and all that follow it."""
        self._doubtful_firsts.clear()
        self._held_until_s = now + HOLD_S

    def admit(self, first: int, last: int, now: float) -> SequenceResult:
        """Check a message with the numbers ``first`` to ``last``.

        The numbers count as received unless the message is doubtful.
        """
        if last <= self.last:
            return SequenceResult()
        lost = max(0, first - self.last - 1)
        if lost and now < self._held_until_s:
            return SequenceResult(is_after_gap=True, is_held=True)
        if lost and first not in self._doubtful_firsts:
            if len(self._doubtful_firsts) >= _DOUBTFUL_MAX:
                self._doubtful_firsts.clear()
            self._doubtful_firsts.add(first)
            return SequenceResult(is_after_gap=True)
        first_new = max(first, self.last + 1)
        self._doubtful_firsts.clear()
        self._held_until_s = 0.0
        self.last = last
        return SequenceResult(first_new, lost)
