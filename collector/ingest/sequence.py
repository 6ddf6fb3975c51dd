"""Sequence numbers of a job's messages of one type: detects repeated and missing messages."""

from typing import NamedTuple


class SequenceResult(NamedTuple):
    """Result for a message: its first new number, and the count of lost numbers before it.

    ``first_new`` is 0 if all numbers are repeated. ``is_after_gap``: the message follows a gap that
    the agent may still fill.
    """

    first_new: int = 0
    lost: int = 0
    is_after_gap: bool = False


class SequenceTracker:
    """The numbers received so far; `last` is the highest.

    A message after a gap is doubtful the first time: the missing messages may have been refused
    while the store was full, and then the agent sends them again. The agent sends in order, from
    the lowest unacked number, so the missing messages are lost if the same gap appears again.
    """

    def __init__(self, last: int) -> None:
        self.last = last
        self._doubtful_first = 0

    def admit(self, first: int, last: int) -> SequenceResult:
        """Check a message with the numbers ``first`` to ``last``.

        The numbers count as received unless the message is doubtful.
        """
        if last <= self.last:
            return SequenceResult()
        lost = max(0, first - self.last - 1)
        if lost and first != self._doubtful_first:
            self._doubtful_first = first
            return SequenceResult(is_after_gap=True)
        first_new = max(first, self.last + 1)
        self._doubtful_first = 0
        self.last = last
        return SequenceResult(first_new, lost)
