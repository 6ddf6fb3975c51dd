"""The cost of profiling by step kind; the budget holds for each kind, and for all together."""

from __future__ import annotations

from typing import Mapping, Sequence, Tuple, Union

from ...formats import layout
from ...formats.policy import MILLION
from ...formats.step_kinds import main_kind

Words = Union["memoryview[int]", Sequence[int]]
Kinds = Mapping[int, Tuple[str, str, int]]  # (name, role, weight) by number, as in layout.KINDS

_STEP, _SELF, _EXTRA = (layout.WORD[name] for name in ("step_ns", "self_ns", "extra_ns"))
_TIMES = layout.TIMES_AT // 8
OTHER_TRACES = 2  # traces that all kinds but the main one get in any case


class KindCost(object):
    """The cost of one kind: ns ``spent``, steps ``traced``, and whether some are ``traceable``."""

    __slots__ = ("spent", "traceable", "traced")

    def __init__(self) -> None:
        self.spent = 0
        self.traced = 0
        self.traceable = False


class Costs(object):
    """The costs of all kinds; the channel's ``words`` hold their sums."""

    def __init__(self, words: Words, kinds: Kinds) -> None:
        self._words, self.known_kinds = words, kinds
        self._kinds: dict[int, KindCost] = {}

    def of_kind(self, kind: int) -> KindCost:
        """Return the cost of ``kind``."""
        return self._kinds.setdefault(kind, KindCost())

    def totals(self, kind: int, budget: int) -> tuple[int, int]:
        """Return (time in steps, cost) so far, ns, of ``kind`` or of all kinds together.

        The pair that exceeds ``budget`` (parts per million) by more is returned.
        """
        words = self._words
        this_kind = words[_TIMES + kind], self.of_kind(kind).spent
        all_kinds = words[_STEP], words[_SELF] + words[_EXTRA]
        return max(this_kind, all_kinds, key=lambda pair: pair[1] * MILLION - budget * pair[0])

    def should_yield(self, kind: int) -> bool:
        """Return whether steps of ``kind`` must wait for traces of the main kind.

        The main kind gets at least as many traces as all other kinds together. There are two
        exceptions: the first trace of each kind never waits, and the other kinds together get
        OTHER_TRACES traces in any case.
        """
        if not self.of_kind(kind).traced:
            return False
        costs = {step_kind: cost for step_kind, cost in list(self._kinds.items()) if cost.traceable}
        main = main_kind({step_kind: self._words[_TIMES + step_kind] for step_kind in costs}, self.known_kinds)
        if main is None or main == kind:
            return False
        other_traces = sum(cost.traced for step_kind, cost in costs.items() if step_kind != main)
        return other_traces >= max(costs[main].traced - 1, OTHER_TRACES)
