"""The pace of tracing: which steps of one kind are traced under a policy."""

from __future__ import annotations

from collections import deque

from ...formats import layout
from ...formats.policy import MILLION, NEVER
from .page_faults import PageFaultMonitor, fault_count, median

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from ...formats.policy import Policy

WARM_UP = 2  # first runs of a key that are not traced: they compile
FIRST_TRACES = 3  # next runs of a key that are traced, so that a short job yields a profile
SAMPLES = 5  # number of untraced durations that an estimate needs
PROBE_STEPS = 2  # untraced steps measured before each trace, since steps change
HISTORY = 9
PENDING_MAX = 32  # durations kept until an estimate exists
KEYS_MAX = 8  # only this many keys get first traces
RETRY_MAX = 512  # maximum steps between two calls of should_yield
TRIES = 4  # maximum further traces, of FIRST_TRACES steps each, to undo additional page faults
FAULT_NS = 1000  # ns: minimum cost of a page fault
FAULTS_MIN = 256  # minimum rise of page faults per step for a further trace


class _KeyStats(object):
    """Statistics of the steps of one key; recent durations in ns."""

    __slots__ = ("base", "first", "pending", "postponed", "seen", "slow", "traced")

    def __init__(self) -> None:
        self.seen = 0
        self.first = 0  # number of FIRST_TRACES traces so far
        self.postponed = False  # whether one of them was postponed in favor of steps of other kinds
        self.base: deque[int] = deque(maxlen=HISTORY)  # untraced
        self.traced: deque[int] = deque(maxlen=SAMPLES)
        self.pending: deque[int] = deque(maxlen=PENDING_MAX)  # traced, without an estimate of their extra time yet
        self.slow: deque[int] = deque(maxlen=PENDING_MAX)  # untraced, perhaps slowed down by the trace before


class TracePacer(object):
    """Decides for the steps of one kind which ones are traced.

    ``totals`` returns (time of the steps, cost of tracing) so far, ns. A step whose ordinal is
    below ``trigger`` and whose key is in ``known_keys`` is not traced; its caller need not ask. All
    others call ``should_trace``, then ``note_traced`` or ``note_untraced`` with their duration.
    Under a budget, the ``first`` steps of each key after its warm-up are traced.

    Under a budget, when steps take more page faults after a trace than before, the next steps are
    traced at once: this usually restores the old memory layout. If it does not, ``lasting_faults``
    becomes the additional page faults per step. ``faults`` returns the process's page faults so
    far. ``should_yield`` returns whether steps of another kind are traced first.
    """

    def __init__(
        self,
        policy: Policy,
        totals: Callable[[], tuple[int, int]],
        first: int = FIRST_TRACES,
        faults: Callable[[], int] = fault_count,
        should_yield: Callable[[], bool] = bool,
    ) -> None:
        self.known_keys: set[int] = set()
        self.lasting_faults = 0
        self._totals = totals
        self._first_traces = first
        self._should_yield = should_yield
        self._retry_steps = 1  # steps until it is called again
        self._keys: dict[int, _KeyStats] = {}
        self._costs: deque[int] = deque(maxlen=SAMPLES)  # of the last traces
        self._probe_steps = 0  # untraced steps to measure before the next trace
        self._last = NEVER  # ordinal of the last selected step
        self._after_trace = False  # whether the current step directly follows it
        self._unreported_ns = 0  # ns: unreported extra time of steps directly after a trace; negative if they took less
        self._count_faults = faults
        self._watched: list[tuple[_KeyStats, int]] = []  # steps since the last trace that are not yet classified
        self.follow(policy)

    def follow(self, policy: Policy, max_traced: int = NEVER) -> None:
        """Follow ``policy`` for at most ``max_traced`` traced steps; measurements are kept."""
        self._classify_watched(False)
        self.policy = policy
        self._traces_left = max_traced  # steps that may still be traced
        self._faults = PageFaultMonitor(self._count_faults)  # used only under a budget
        self._tries = 0
        self._retraces_left = 0  # steps still to be traced in this try
        self._plan = _PLANS[policy.mode]
        self.known_keys.clear()
        self.trigger = self._plan(self, 0)

    def is_finished(self, ordinal: int) -> bool:
        """Return whether no step after ``ordinal`` is traced.

        That is so when the maximum number is reached, or the end of the last range.
        """
        return self._traces_left <= 0 or (self.policy.mode == layout.MODE_STEPS and ordinal >= self.policy.last)

    @property
    def last(self) -> int:
        """Ordinal of the last selected step, 0 for none."""
        return self._last if self._last != NEVER else 0

    def selects(self, ordinal: int) -> bool:
        """Return whether the policy selects step ``ordinal`` by its number; a budget never does."""
        policy = self.policy
        if self._traces_left <= 0:
            return False
        if policy.mode == layout.MODE_EVERY:
            return ordinal % policy.every == 0
        if policy.mode == layout.MODE_STEPS:
            return any(first <= ordinal <= last for first, last in policy.ranges)
        return policy.mode == layout.MODE_ALL

    def should_trace(self, ordinal: int, key: int, count: int = 1) -> bool:
        """Return whether step ``ordinal`` (from 1), which counts as ``count`` steps, is traced."""
        entry = self._keys.get(key)
        if entry is None:
            entry = self._keys[key] = _KeyStats()
        entry.seen += 1
        self._after_trace = ordinal == self._last + 1
        if self._traces_left <= 0:
            self.trigger = NEVER
            return False
        if self.policy.mode == layout.MODE_BUDGET:
            self._faults.begin(ordinal)
        wanted = (key not in self.known_keys and self._first(key, entry)) or self._should_retrace()
        number = ordinal if count == 1 else self._number(ordinal, count)
        if not wanted and number >= self.trigger:
            wanted = _DECISIONS[self.policy.mode](self, number)
            if not wanted and (self._after_trace or self._faults.watching):
                self.trigger = ordinal + count  # measure the next step, too: it shows the effect of the trace
        if wanted:
            # The trigger stays: steps of other threads may have begun before this one. The next
            # step is measured, too: it is slower, since it finds cold caches and returned memory.
            self._last, self._probe_steps = ordinal + count - 1, PROBE_STEPS
            self._traces_left -= 1
            self._classify_watched(False)
            self._faults.trace(ordinal)
        return wanted

    def _number(self, ordinal: int, count: int) -> int:
        """Return the first selected one of ``count`` steps, the last one if none is selected."""
        return next((each for each in range(ordinal, ordinal + count) if self.selects(each)), ordinal + count - 1)

    def note_untraced(self, key: int, duration: int) -> int:
        """Record an untraced step; return newly known extra time of traced ones, ns."""
        entry = self._keys.get(key)
        if entry is None or entry.seen == 1:
            return 0
        if self._probe_steps:
            self._probe_steps -= 1
        if self._after_trace:
            self._after_trace = False
            return self._extra_after(entry, duration)
        if self._faults.watching:
            self._watched.append((entry, duration))
            return 0
        entry.base.append(duration)
        if len(entry.base) < SAMPLES:
            return 0
        if entry.first >= self._first_traces or entry.postponed or self.policy.mode != layout.MODE_BUDGET:
            self._mark_known(key)
        postponed = [self._extra(entry, each) for each in entry.pending]
        self._costs.extend(postponed)
        base = median(entry.base)
        extra = sum(postponed) + sum(_excess(base, each) for each in entry.slow)
        entry.pending.clear()
        entry.slow.clear()
        return extra

    def note_traced(self, key: int, duration: int, own_ns: int) -> int:
        """Record a traced step and our own work for it, ns; return its extra time if known."""
        entry = self._keys.setdefault(key, _KeyStats())
        entry.traced.append(duration)
        if len(entry.base) < SAMPLES:
            entry.pending.append(duration)
            return 0
        extra = self._extra(entry, duration)
        self._costs.append(extra + own_ns)
        return extra

    # -- the first steps of a key ----------------------------------------------------------------

    def _first(self, key: int, entry: _KeyStats) -> bool:
        """Return whether this is one of the first steps of its key, traced under a budget."""
        if (self.policy.mode == layout.MODE_OFF and not entry.pending) or len(self._keys) > KEYS_MAX:
            self._mark_known(key)
            return False
        if self.policy.mode != layout.MODE_BUDGET or entry.seen <= WARM_UP or entry.first >= self._first_traces:
            return False
        if self._should_yield():
            entry.postponed = True
            return False
        entry.first += 1
        return True

    def _mark_known(self, key: int) -> None:
        # The set is bounded, even if a job uses new keys all the time.
        if len(self.known_keys) < 4096:
            self.known_keys.add(key)

    # -- effects of a trace on later steps -------------------------------------------------------

    def _should_retrace(self) -> bool:
        """Return whether to trace again, since steps take more page faults than before a trace."""
        faults = self._faults
        if not faults.watching:
            return False
        if self._retraces_left:
            self._retraces_left -= 1
            return True
        rise = faults.rise()
        if rise is None:
            return False
        risen = rise > FAULTS_MIN and rise * FAULT_NS * MILLION > self.policy.budget * self._base()
        self._classify_watched(risen)
        if risen and self._tries < TRIES:
            self._tries += 1
            self._retraces_left = FIRST_TRACES - 1
            return True
        if risen:
            self.lasting_faults = rise
        self._tries = 0
        faults.accept()
        return False

    def _classify_watched(self, risen: bool) -> None:
        """Count the watched steps as normal ones, or as slowed down by a trace."""
        for entry, duration in self._watched:
            (entry.slow if risen else entry.base).append(duration)
        del self._watched[:]

    # -- costs -----------------------------------------------------------------------------------

    @staticmethod
    def _extra(entry: _KeyStats, duration: int) -> int:
        """Estimate the extra time of a traced step; cut its duration at twice the usual one."""
        usual = median(entry.traced) if entry.traced else duration
        return _excess(median(entry.base), min(duration, 2 * usual))

    def _extra_after(self, entry: _KeyStats, duration: int) -> int:
        """Return the extra time of the step after a traced one.

        The time that a shorter step saved is subtracted from the next one's extra time.
        """
        if len(entry.base) < SAMPLES:
            entry.slow.append(duration)
            return 0
        base = median(entry.base)
        self._unreported_ns = max(self._unreported_ns + min(duration, 2 * base) - base, -base)
        extra = max(self._unreported_ns, 0)
        self._unreported_ns -= extra
        if self._costs:
            self._costs[-1] += extra
        return extra

    def _base(self) -> int:
        return median([median(entry.base) for entry in self._keys.values() if entry.base] or [0])

    # -- decisions and plans, one of each per mode -----------------------------------------------

    def _trace_none(self, _ordinal: int) -> bool:
        return False

    def _trace_all(self, _ordinal: int) -> bool:
        return True

    def _trace_every(self, ordinal: int) -> bool:
        if ordinal % self.policy.every:
            self.trigger = self._plan(self, ordinal)
            return False
        return True

    def _trace_ranges(self, ordinal: int) -> bool:
        for first, last in self.policy.ranges:
            if first <= ordinal <= last:
                return True
        self.trigger = self._plan(self, ordinal)
        return False

    def _trace_within_budget(self, ordinal: int) -> bool:
        """Trace if the budget allows it, after some untraced steps for comparison."""
        elapsed, spent = self._totals()
        if (spent + self._next_cost()) * MILLION > self.policy.budget * elapsed:
            self.trigger = self._plan(self, ordinal)
            return False
        if self._probe_steps:
            return False
        if self._should_yield():
            self._retry_steps = min(2 * self._retry_steps, RETRY_MAX)
            self.trigger = ordinal + self._retry_steps
            return False
        self._retry_steps = 1
        return True

    def _plan_never(self, _ordinal: int) -> int:
        return NEVER

    def _plan_all(self, _ordinal: int) -> int:
        return 0

    def _plan_every(self, ordinal: int) -> int:
        return ordinal - ordinal % self.policy.every + self.policy.every

    def _plan_ranges(self, ordinal: int) -> int:
        ahead = [max(first, ordinal + 1) for first, last in self.policy.ranges if last > ordinal]
        return min(ahead) if ahead else NEVER

    def _plan_budget(self, ordinal: int) -> int:
        """Return the step at which another trace fits the budget.

        A varying delay is added, so that traces do not coincide with a period of the job.
        """
        self._probe_steps = PROBE_STEPS
        base = self._base()
        if not base:
            return ordinal + 1
        elapsed, spent = self._totals()
        due = (spent + self._next_cost()) * MILLION // self.policy.budget - elapsed
        wait = max(due // base, 1)
        wait += wait * (ordinal * 2654435761 % 97) // 388
        return ordinal + wait

    def _next_cost(self) -> int:
        return median(self._costs) if self._costs else self._base()


def _excess(base: int, duration: int) -> int:
    """Return how much ``duration`` exceeds ``base``; outliers are cut at ten times ``base``."""
    return max(0, min(duration, 10 * base) - base)


_PLANS = {
    layout.MODE_OFF: TracePacer._plan_never,
    layout.MODE_ALL: TracePacer._plan_all,
    layout.MODE_EVERY: TracePacer._plan_every,
    layout.MODE_STEPS: TracePacer._plan_ranges,
    layout.MODE_BUDGET: TracePacer._plan_budget,
}
_DECISIONS = {
    layout.MODE_OFF: TracePacer._trace_none,
    layout.MODE_ALL: TracePacer._trace_all,
    layout.MODE_EVERY: TracePacer._trace_every,
    layout.MODE_STEPS: TracePacer._trace_ranges,
    layout.MODE_BUDGET: TracePacer._trace_within_budget,
}
