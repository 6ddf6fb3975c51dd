"""Where a job's numbered messages of one type stand: what is new, what was here before, what is missing."""

from typing import NamedTuple


class Verdict(NamedTuple):
    """What a message is: its first number that is not here yet (0: all of it is), and how many before it are lost."""

    fresh: int = 0
    lost: int = 0
    doubtful: bool = False


class Sequence:
    """The numbers received so far, `last` being the highest.

    A message that leaves a gap is doubtful at first: what it skips may only have been turned away while the
    store was full, and be on its way again. An agent sends again from the lowest number that is not acked, in order, so
    a gap that comes a second time without anything before it is a loss.
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
