"""What tracing has cost: an account for each kind of step, so that no kind uses up the budget of another."""

from __future__ import annotations

from ...formats import layout
from ...formats.policy import MILLION
from ...formats.step_kinds import leading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence, Union

    Words = Union[memoryview[int], Sequence[int]]

_STEP, _SELF, _EXTRA = (layout.JOB_WORDS[name] // 8 for name in ("step_ns", "self_ns", "extra_ns"))
_TIMES = layout.TIMES_AT // 8


class Account(object):
    """What the steps of one kind have cost in this process: ns ``spent`` and steps ``traced``; whether any ``traceable`` traced."""

    __slots__ = ("spent", "traceable", "traced")

    def __init__(self) -> None:
        self.spent = 0
        self.traced = 0
        self.traceable = False


class Accounts(object):
    """The accounts of all kinds, beside the channel's ``words``, which are their sums."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._of: dict[int, Account] = {}

    def of(self, kind: int) -> Account:
        """Return the account of ``kind``."""
        return self._of.setdefault(kind, Account())

    def totals(self, kind: int, budget: int) -> tuple[int, int]:
        """Return (time of steps, what tracing cost) so far, ns: of ``kind``, or of all kinds where they exceed the budget by more.

        ``budget``: parts per million.
        """
        words = self._words
        mine = words[_TIMES + kind], self.of(kind).spent
        whole = words[_STEP], words[_SELF] + words[_EXTRA]
        return max(mine, whole, key=lambda one: one[1] * MILLION - budget * one[0])

    def should_yield(self, kind: int, least: int) -> bool:
        """Tell whether steps of ``kind`` go untraced, so that the leading kind has no fewer traces than all others together.

        In any case each kind has one trace, and the others together have ``least`` - 1.
        """
        if not self.of(kind).traced:
            return False
        accounts = {each: account for each, account in list(self._of.items()) if account.traceable}
        first = leading({each: self._words[_TIMES + each] for each in accounts})
        if first is None or first == kind:
            return False
        others = sum(account.traced for each, account in accounts.items() if each != first)
        return others + 1 >= max(accounts[first].traced, least)
