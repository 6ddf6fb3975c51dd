"""Sequence numbers of a job's messages of one type: new, repeated, missing."""

from typing import NamedTuple


class Verdict(NamedTuple):
    """First new number of a message (0: all repeated), and how many before it are lost."""

    fresh: int = 0
    lost: int = 0
    doubtful: bool = False


class Sequence:
    """The numbers received so far, `last` being the highest.

    A message after a gap is doubtful at first: the skipped ones may have been refused while the store
    was full, and the agent sends them again. It sends in order from the lowest number that is not
    acked, so the same gap a second time is a loss.
    """

    def __init__(self, last: int) -> None:
        self.last = last
        self._doubted = 0

    def admit(self, first: int, last: int) -> Verdict:
        """Judge a message of the numbers ``first`` to ``last``; they count as received unless it is doubtful."""
        if last <= self.last:
            return Verdict()
        lost = max(0, first - self.last - 1)
        if lost and first != self._doubted:
            self._doubted = first
            return Verdict(doubtful=True)
        fresh = max(first, self.last + 1)
        self._doubted = 0
        self.last = last
        return Verdict(fresh, lost)
