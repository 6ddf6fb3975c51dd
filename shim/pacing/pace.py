"""The pace of tracing: which of the steps of one kind are traced under a policy, and what that costs."""

from __future__ import annotations

from collections import deque

from ...formats import layout
from ...formats.policy import MILLION, NEVER
from .page_faults import Faults, median, taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from ...formats.policy import Policy

WARM_UP = 2  # runs of a key that are let pass: they compile
FIRST = 3  # runs of a key that are traced then, so that a short job yields a profile
SAMPLES = 5  # untraced durations that make an estimate
LOOK = 2  # of them, how many are taken beside each trace, since steps change
KEPT = 9
LATE = 32  # durations that wait for what is usual to be known
KEYS = 8  # keys that get first traces of their own
PATIENCE = 512  # steps, at the most, between two questions whether others have had enough
TRIES = 4  # further traces, FIRST steps each, to undo what one has done to the steps after it
FAULT = 1000  # ns that a page fault takes, at the least
LEAST = 256  # page faults a step that are worth a further trace


class _Key(object):
    """What is known of the steps of one key: the durations of late, in ns."""

    __slots__ = ("base", "first", "late", "pending", "seen", "slow", "traced")

    def __init__(self) -> None:
        self.seen = 0
        self.first = 0  # of the FIRST traces, how many were
        self.late = False  # whether one of them was put off, since steps of other kinds had to be traced first
        self.base: deque[int] = deque(maxlen=KEPT)  # untraced
        self.traced: deque[int] = deque(maxlen=SAMPLES)
        self.pending: deque[int] = deque(maxlen=LATE)  # traced, their extra time not estimated yet
        self.slow: deque[int] = deque(maxlen=LATE)  # untraced, it may be slow for a trace before them, likewise


class Pace(object):
    """Decides for the steps of one kind; ``ledger`` is a function that returns (time of the steps, what tracing cost) so far, ns.

    A step whose ordinal is below ``trigger`` and whose key is in ``known`` need not be asked about: it is not traced. All
    others are: ``want``, then ``traced`` or ``untraced`` with how long it took. Of each key ``first`` steps are traced soon.

    Under a budget, steps that take more page faults after a trace than before are traced again at once, for that mostly
    undoes it; ``lasting`` becomes the number of faults more that a step takes where it did not. ``faults`` returns the
    process's page faults so far. ``gives_way`` tells whether steps of another kind are to be traced first.
    """

    def __init__(
        self,
        policy: Policy,
        ledger: Callable[[], tuple[int, int]],
        first: int = FIRST,
        faults: Callable[[], int] = taken,
        gives_way: Callable[[], bool] = bool,
    ) -> None:
        self.policy = policy
        self.known: set[int] = set()
        self.lasting = 0
        self._ledger = ledger
        self._firsts = first
        self._gives_way = gives_way
        self._patience = 1  # steps to the next question whether it still does
        self._keys: dict[int, _Key] = {}
        self._costs: deque[int] = deque(maxlen=SAMPLES)  # of the last traces
        self._look = 0  # untraced steps to look at before the next trace
        self._last = NEVER  # ordinal of the last step that was to be traced
        self._follows = False  # whether the step last asked about came right after it
        self._aftermath = 0  # ns that such steps took more than others, as far as not told yet; below 0 where less
        self._faults = Faults(faults)  # is told of steps under a budget alone: else it never watches
        self._watched: list[tuple[_Key, int]] = []  # steps since the last trace, not known yet to be as usual
        self._tries = 0
        self._more = 0  # steps that are still to be traced in this try
        self._plan = _PLANS[policy.mode]
        self.trigger = self._plan(self, 0)

    def names(self, ordinal: int) -> bool:
        """Tell whether the policy says by its number that step ``ordinal`` is to be traced; a budget names none."""
        policy = self.policy
        if policy.mode == layout.MODE_EVERY:
            return ordinal % policy.every == 0
        if policy.mode == layout.MODE_STEPS:
            return any(first <= ordinal <= last for first, last in policy.ranges)
        return policy.mode == layout.MODE_ALL

    def want(self, ordinal: int, key: int) -> bool:
        """Tell whether step ``ordinal`` (from 1) is to be traced."""
        entry = self._keys.get(key)
        if entry is None:
            entry = self._keys[key] = _Key()
        entry.seen += 1
        self._follows = ordinal == self._last + 1
        if self.policy.mode == layout.MODE_BUDGET:
            self._faults.begin(ordinal)
        wanted = (key not in self.known and self._first(key, entry)) or self._undo()
        if not wanted and ordinal >= self.trigger:
            wanted = _DECISIONS[self.policy.mode](self, ordinal)
            if not wanted and (self._follows or self._faults.watching):
                self.trigger = ordinal + 1  # which shows what is usual now, and what the trace has done
        if wanted:
            # The trigger stays: steps of other threads that began before this one may ask yet, and the one after this will:
            # it is slower, too, for it finds the caches cold and the memory given back.
            self._last, self._look = ordinal, LOOK
            self._judge(False)
            self._faults.trace(ordinal)
        return wanted

    def untraced(self, key: int, duration: int) -> int:
        """Take note of a step that was asked about and not traced; return newly known extra time of traced ones, ns."""
        entry = self._keys.get(key)
        if entry is None or entry.seen == 1:
            return 0
        if self._look:
            self._look -= 1
        if self._follows:
            self._follows = False
            return self._after(entry, duration)
        if self._faults.watching:
            self._watched.append((entry, duration))
            return 0
        entry.base.append(duration)
        if len(entry.base) < SAMPLES:
            return 0
        if entry.first >= self._firsts or entry.late or self.policy.mode != layout.MODE_BUDGET:
            self._know(key)
        late = [self._extra(entry, each) for each in entry.pending]
        self._costs.extend(late)
        base = median(entry.base)
        extra = sum(late) + sum(_beyond(base, each) for each in entry.slow)
        entry.pending.clear()
        entry.slow.clear()
        return extra

    def traced(self, key: int, duration: int, own: int) -> int:
        """Take note of a traced step and of our own work for it, ns; return its extra time as far as it is known."""
        entry = self._keys.setdefault(key, _Key())
        entry.traced.append(duration)
        if len(entry.base) < SAMPLES:
            entry.pending.append(duration)
            return 0
        extra = self._extra(entry, duration)
        self._costs.append(extra + own)
        return extra

    # -- the first steps of a key ----------------------------------------------------------------

    def _first(self, key: int, entry: _Key) -> bool:
        """Tell whether this step is one of the first of its key that are traced under a budget."""
        if self.policy.mode == layout.MODE_OFF or len(self._keys) > KEYS:
            self._know(key)
            return False
        if self.policy.mode != layout.MODE_BUDGET or entry.seen <= WARM_UP or entry.first >= self._firsts:
            return False
        if self._gives_way():
            entry.late = True
            return False
        entry.first += 1
        return True

    def _know(self, key: int) -> None:
        # A job with ever new keys must not make the set grow for ever.
        if len(self.known) < 4096:
            self.known.add(key)

    # -- what a trace leaves behind --------------------------------------------------------------

    def _undo(self) -> bool:
        """Tell whether this step is traced because those since the last trace take more page faults than those before it."""
        faults = self._faults
        if not faults.watching:
            return False
        if self._more:
            self._more -= 1
            return True
        rise = faults.rise()
        if rise is None:
            return False
        risen = rise > LEAST and rise * FAULT * MILLION > self.policy.budget * self._base()
        self._judge(risen)
        if risen and self._tries < TRIES:
            self._tries += 1
            self._more = FIRST - 1
            return True
        if risen:
            self.lasting = rise
        self._tries = 0
        faults.accept()
        return False

    def _judge(self, risen: bool) -> None:
        """Let the steps that were watched be usual ones, or such that are slow because of a trace."""
        for entry, duration in self._watched:
            (entry.slow if risen else entry.base).append(duration)
        del self._watched[:]

    # -- costs -----------------------------------------------------------------------------------

    @staticmethod
    def _extra(entry: _Key, duration: int) -> int:
        """Estimate how much longer a traced step of ``duration`` took for being traced: outliers count as what is usual."""
        usual = median(entry.traced) if entry.traced else duration
        return _beyond(median(entry.base), min(duration, 2 * usual))

    def _after(self, entry: _Key, duration: int) -> int:
        """Return what the step after a traced one took more than usual; what one took less is set off against the next."""
        if len(entry.base) < SAMPLES:
            entry.slow.append(duration)
            return 0
        base = median(entry.base)
        self._aftermath = max(self._aftermath + min(duration, 2 * base) - base, -base)
        extra = max(self._aftermath, 0)
        self._aftermath -= extra
        if self._costs:
            self._costs[-1] += extra
        return extra

    def _base(self) -> int:
        return median([median(entry.base) for entry in self._keys.values() if entry.base] or [0])

    # -- decisions and plans, one each a mode ----------------------------------------------------

    def _no(self, _ordinal: int) -> bool:
        return False

    def _yes(self, _ordinal: int) -> bool:
        return True

    def _each(self, ordinal: int) -> bool:
        if ordinal % self.policy.every:
            self.trigger = self._plan(self, ordinal)
            return False
        return True

    def _between(self, ordinal: int) -> bool:
        for first, last in self.policy.ranges:
            if first <= ordinal <= last:
                return True
        self.trigger = self._plan(self, ordinal)
        return False

    def _afford(self, ordinal: int) -> bool:
        """Trace if the budget bears one more, after a look at a few steps beside it."""
        elapsed, spent = self._ledger()
        if (spent + self._next_cost()) * MILLION > self.policy.budget * elapsed:
            self.trigger = self._plan(self, ordinal)
            return False
        if self._look:
            return False
        if self._gives_way():
            self._patience = min(2 * self._patience, PATIENCE)
            self.trigger = ordinal + self._patience
            return False
        self._patience = 1
        return True

    def _plan_never(self, _ordinal: int) -> int:
        return NEVER

    def _plan_all(self, _ordinal: int) -> int:
        return 0

    def _plan_each(self, ordinal: int) -> int:
        return ordinal - ordinal % self.policy.every + self.policy.every

    def _plan_between(self, ordinal: int) -> int:
        ahead = [max(first, ordinal + 1) for first, last in self.policy.ranges if last > ordinal]
        return min(ahead) if ahead else NEVER

    def _plan_budget(self, ordinal: int) -> int:
        """Return when a further trace will fit the budget, a little later each other time lest it keep step with the job."""
        self._look = LOOK
        base = self._base()
        if not base:
            return ordinal + 1
        elapsed, spent = self._ledger()
        due = (spent + self._next_cost()) * MILLION // self.policy.budget - elapsed
        wait = max(due // base, 1)
        wait += wait * (ordinal * 2654435761 % 97) // 388
        return ordinal + wait

    def _next_cost(self) -> int:
        return median(self._costs) if self._costs else self._base()


def _beyond(base: int, duration: int) -> int:
    """Return how much longer than ``base`` a step took; an outlier counts as ten times that."""
    return max(0, min(duration, 10 * base) - base)


_PLANS = {
    layout.MODE_OFF: Pace._plan_never,
    layout.MODE_ALL: Pace._plan_all,
    layout.MODE_EVERY: Pace._plan_each,
    layout.MODE_STEPS: Pace._plan_between,
    layout.MODE_BUDGET: Pace._plan_budget,
}
_DECISIONS = {
    layout.MODE_OFF: Pace._no,
    layout.MODE_ALL: Pace._yes,
    layout.MODE_EVERY: Pace._each,
    layout.MODE_STEPS: Pace._between,
    layout.MODE_BUDGET: Pace._afford,
}
