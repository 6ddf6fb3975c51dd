"""The trace policy: which steps are traced."""

from __future__ import annotations

from . import layout
from .errors import TfprofError
from .values import InvalidValueError, decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

#: A number that no step reaches; all numbers in policies, orders and answers are below it.
NEVER = 1 << 62
MILLION = 1000000

MODES = {"off": layout.MODE_OFF, "all": layout.MODE_ALL}
LEVELS = {"auto": layout.LEVEL_AUTO, "software": layout.LEVEL_SOFTWARE, "full": layout.LEVEL_FULL}


class PolicyError(TfprofError):
    """An invalid policy."""

    slug = "trace-policy"
    exit_code = 2


class Policy(object):
    """A trace policy.

    ``mode`` and ``level`` are constants of `layout`. ``every`` is an interval in steps, ``budget``
    is in parts per million. ``ranges`` are the step ranges to trace, by default a single one from
    ``first`` to ``last``.
    """

    __slots__ = ("budget", "every", "first", "last", "level", "mode", "ranges")

    def __init__(
        self,
        mode: int,
        level: int = layout.LEVEL_AUTO,
        first: int = 0,
        last: int = 0,
        every: int = 0,
        budget: int = 0,
        ranges: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self.mode = mode
        self.level = level
        self.first = first
        self.last = last
        self.every = every
        self.budget = budget
        self.ranges = ranges or ((first, last),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and (self.words(), self.ranges) == (other.words(), other.ranges)

    def __hash__(self) -> int:
        return hash((self.words(), self.ranges))

    def __repr__(self) -> str:
        return "Policy%r%r" % (self.words(), self.ranges)

    def words(self) -> tuple[int, int, int, int, int, int]:
        """Return mode, level, first, last, every, budget: their sequence in the channel."""
        return (self.mode, self.level, self.first, self.last, self.every, self.budget)

    def next_selected(self, ordinal: int) -> int:
        """Return the first step from ``ordinal`` on that is selected by its number.

        NEVER if there is none, as under a budget.
        """
        if self.mode == layout.MODE_ALL:
            return ordinal
        if self.mode == layout.MODE_EVERY:
            return ordinal + -ordinal % self.every
        if self.mode == layout.MODE_STEPS:
            return min((max(first, ordinal) for first, last in self.ranges if ordinal <= last), default=NEVER)
        return NEVER

    @classmethod
    def from_text(cls, trace: str, level: str = "auto") -> Policy:
        """Return the policy in the texts of --trace and --trace-level; PolicyError when invalid."""
        word, _, value = trace.strip().partition("=")
        level_number = LEVELS.get(level.strip())
        if level_number is None:
            raise PolicyError("%r is not a trace level: auto, software or full" % level)
        if word in MODES and not value and "=" not in trace:
            return cls(MODES[word], level_number)
        try:
            return cls(level=level_number, **_PARSERS.get(word, _reject)(value))
        except InvalidValueError:
            raise PolicyError("%r is not a trace policy: off, all, every=N, steps=A-B or budget=P%%" % trace) from None

    @classmethod
    def from_words(cls, words: Sequence[int], ranges: tuple[tuple[int, int], ...] = ()) -> Policy:
        """Return the policy with the values in a channel; PolicyError when invalid."""
        mode, level, first, last, every, budget = words
        is_invalid = (
            mode not in (layout.MODE_OFF, layout.MODE_BUDGET, layout.MODE_ALL, layout.MODE_EVERY, layout.MODE_STEPS)
            or level not in LEVELS.values()
            or (mode == layout.MODE_EVERY and every == 0)
            or (mode == layout.MODE_STEPS and not 0 < first <= last)
            or (mode == layout.MODE_BUDGET and not 0 < budget <= MILLION)
            or not all(first <= low <= high <= last for low, high in ranges)
        )
        if is_invalid:
            raise PolicyError("the values %r in the channel are not a policy" % (words,))
        return cls(mode, level, first, last, every, budget, ranges)


def _reject(value: str) -> dict[str, Any]:
    raise InvalidValueError(value)


def _parse_every(value: str) -> dict[str, Any]:
    number = _positive_number(value)
    return {"mode": layout.MODE_EVERY, "every": number}


def _parse_steps(value: str) -> dict[str, Any]:
    ranges = tuple(sorted(_parse_range(part) for part in value.split(",")))
    return {"mode": layout.MODE_STEPS, "first": ranges[0][0], "last": max(last for _, last in ranges), "ranges": ranges}


def _parse_range(value: str) -> tuple[int, int]:
    first, dash, last = value.partition("-")
    low = _positive_number(first)
    high = _positive_number(last) if dash else low
    if high < low:
        raise InvalidValueError
    return low, high


def _parse_budget(value: str) -> dict[str, Any]:
    if not value.endswith("%"):
        raise InvalidValueError
    share = decimal(value[:-1])
    if not 0 < share <= 100:
        raise InvalidValueError
    return {"mode": layout.MODE_BUDGET, "budget": max(1, int(share * MILLION / 100))}


def _positive_number(value: str) -> int:
    number = int(value) if value.isascii() and value.isdigit() and len(value) < 20 else 0
    if not 0 < number < NEVER:
        raise InvalidValueError
    return number


#: Parsers of the value after "=": each returns arguments of Policy.
_PARSERS = {"every": _parse_every, "steps": _parse_steps, "budget": _parse_budget}

DEFAULT = Policy(layout.MODE_BUDGET, budget=MILLION // 100)
