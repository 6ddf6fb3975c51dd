"""The pace of tracing: which steps of a kind are traced under a policy."""

from __future__ import annotations

from collections import deque

from ...formats import layout
from ...formats.policy import MILLION, NEVER
from .page_faults import PageFaultMonitor, fault_count, median

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from ...formats.policy import Policy

WARM_UP = 2  # first steps of a key, which are not traced: they compile
FIRST_TRACES = 3  # next steps of a key, which are traced, so that a short job yields a profile
SAMPLES = 5  # number of untraced durations that an estimate needs
PROBE_STEPS = 2  # untraced steps measured before each trace, since steps change
HISTORY = 9  # recent untraced durations kept for each key
PENDING_MAX = 32  # durations kept until an estimate exists
KEYS_MAX = 8  # only this many keys get first traces
RETRY_MAX = 512  # maximum steps between two calls of should_yield
TRIES = 4  # maximum tries to undo additional page faults; each traces FIRST_TRACES further steps
FAULT_NS = 1000  # ns: minimum cost of a page fault
FAULTS_MIN = 256  # minimum rise of page faults per step for a try


class _KeyStats(object):
    """Statistics of the steps of one key.

    ``untraced``, ``traced``, ``pending`` and ``slowed`` are recent durations (ns).
    """

    __slots__ = ("first_traces", "pending", "slowed", "step_count", "traced", "untraced", "was_postponed")

    def __init__(self) -> None:
        self.step_count = 0
        self.first_traces = 0  # how many of the first traces of the key were made
        self.was_postponed = False  # whether a first trace was postponed in favor of steps of other kinds
        self.untraced: deque[int] = deque(maxlen=HISTORY)
        self.traced: deque[int] = deque(maxlen=SAMPLES)
        self.pending: deque[int] = deque(maxlen=PENDING_MAX)  # traced, without an estimate of their extra time yet
        self.slowed: deque[int] = deque(maxlen=PENDING_MAX)  # untraced, perhaps slowed down by the trace before


class TracePacer(object):
    """Decides which steps of one kind are traced.

    ``totals`` returns (time in steps, cost of profiling) so far, ns. A step whose ordinal is
    below ``trigger`` and whose key is in ``known_keys`` is not traced, and needs no call. All other
    steps call ``should_trace``, then ``note_traced`` or ``note_untraced`` with their duration.
    Under a budget, ``first_traces`` steps of each key are traced after its warm-up.

    Under a budget, when steps take more page faults after a trace than before, the next steps are
    traced at once: this usually restores the old memory layout. If it does not, ``lasting_faults``
    becomes the additional page faults per step. ``page_faults`` returns the process's page faults
    so far. ``should_yield`` returns whether steps of another kind are traced first. ``wait_min`` is
    the minimum number of steps from a step at which the budget does not allow a trace to the next
    such decision. Such a decision sets ``wait_ns`` to the time that the steps up to ``trigger``
    take if they are as long as before; the tracker reads it and sets it to 0.
    """

    def __init__(
        self,
        policy: Policy,
        totals: Callable[[], tuple[int, int]],
        first_traces: int = FIRST_TRACES,
        page_faults: Callable[[], int] = fault_count,
        should_yield: Callable[[], bool] = bool,
    ) -> None:
        self.known_keys: set[int] = set()
        self.lasting_faults = 0
        self.wait_min = 1
        self.wait_ns = 0
        self._totals = totals
        self._first_traces = first_traces
        self._should_yield = should_yield
        self._retry_steps = 1  # steps until should_yield is called again
        self._keys: dict[int, _KeyStats] = {}
        self._costs: deque[int] = deque(maxlen=SAMPLES)  # costs of the last traces, ns
        self._probe_steps = 0  # untraced steps to measure before the next trace
        self._last_selected = NEVER  # ordinal of the last selected step
        self._is_after_trace = False  # whether the current step directly follows the last selected one
        self._unreported_ns = 0  # unreported extra time of steps directly after a trace; negative if they took less
        self._count_faults = page_faults
        self._watched: list[tuple[_KeyStats, int]] = []  # steps since the last trace that are not yet classified
        self.follow(policy)

    def follow(self, policy: Policy, max_traced: int = NEVER) -> None:
        """Follow ``policy`` for at most ``max_traced`` traced steps, and keep the measurements."""
        self._classify_watched(False)
        self.policy = policy
        self._traces_left = max_traced  # steps that may still be traced
        self._faults = PageFaultMonitor(self._count_faults)  # used only under a budget
        self._tries = 0
        self._retraces_left = 0  # steps still to be traced in this try
        self._plan = _PLANS[policy.mode]
        self.known_keys.clear()
        self.trigger = self._plan(self, 0)

    def decide_at(self, ordinal: int) -> None:
        """Decide at step ``ordinal``, if not before, whether the budget allows a trace."""
        self.trigger = min(self.trigger, ordinal)

    def is_finished(self, ordinal: int) -> bool:
        """Return whether no step after ``ordinal`` is traced.

        This is the case when the maximum number is reached, or the end of the last range.
        """
        return self._traces_left <= 0 or (self.policy.mode == layout.MODE_STEPS and ordinal >= self.policy.last)

    @property
    def last_selected(self) -> int:
        """Ordinal of the last selected step, 0 for none."""
        return self._last_selected if self._last_selected != NEVER else 0

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
        entry.step_count += 1
        self._is_after_trace = ordinal == self._last_selected + 1
        if self._traces_left <= 0:
            self.trigger = NEVER
            return False
        if self.policy.mode == layout.MODE_BUDGET:
            self._faults.note_begin(ordinal)
        is_selected = (key not in self.known_keys and self._is_first_trace(key, entry)) or self._should_retrace()
        number = ordinal if count == 1 else self._first_selected(ordinal, count)
        if not is_selected and number >= self.trigger:
            is_selected = _DECISIONS[self.policy.mode](self, number)
            if not is_selected and (self._is_after_trace or self._faults.is_comparing):
                self.trigger = ordinal + count  # measure the next step, too: it shows the effect of the trace
        if is_selected:
            # The trigger is not raised here: an earlier step of another thread may call this later,
            # and the next step must be measured. That step is slower, since it finds cold caches
            # and returned memory.
            self._last_selected, self._probe_steps = ordinal + count - 1, PROBE_STEPS
            self._traces_left -= 1
            self._classify_watched(False)
            self._faults.note_trace(ordinal)
        return is_selected

    def _first_selected(self, ordinal: int, count: int) -> int:
        """Return the first selected one of ``count`` steps, the last one if none is selected."""
        return next((number for number in range(ordinal, ordinal + count) if self.selects(number)), ordinal + count - 1)

    def note_untraced(self, key: int, duration: int) -> int:
        """Record an untraced step; return the extra time of traced steps that is now known, ns."""
        entry = self._keys.get(key)
        if entry is None or entry.step_count == 1:
            return 0
        if self._probe_steps:
            self._probe_steps -= 1
        if self._is_after_trace:
            self._is_after_trace = False
            return self._extra_after_trace(entry, duration)
        if self._faults.is_comparing:
            self._watched.append((entry, duration))
            return 0
        entry.untraced.append(duration)
        if len(entry.untraced) < SAMPLES:
            return 0
        if entry.first_traces >= self._first_traces or entry.was_postponed or self.policy.mode != layout.MODE_BUDGET:
            self._mark_known(key)
        extras = [self._extra(entry, each) for each in entry.pending]
        self._costs.extend(extras)
        usual = median(entry.untraced)
        extra = sum(extras) + sum(_excess(usual, each) for each in entry.slowed)
        entry.pending.clear()
        entry.slowed.clear()
        return extra

    def note_traced(self, key: int, duration: int, own_ns: int) -> int:
        """Record a traced step and our own work for it, ns; return its extra time, 0 if unknown."""
        entry = self._keys.setdefault(key, _KeyStats())
        entry.traced.append(duration)
        if len(entry.untraced) < SAMPLES:
            entry.pending.append(duration)
            return 0
        extra = self._extra(entry, duration)
        self._costs.append(extra + own_ns)
        return extra

    # -- the first steps of a key ----------------------------------------------------------------

    def _is_first_trace(self, key: int, entry: _KeyStats) -> bool:
        """Return whether this step is one of the first traces of its key, under a budget."""
        if (self.policy.mode == layout.MODE_OFF and not entry.pending) or len(self._keys) > KEYS_MAX:
            self._mark_known(key)
            return False
        if (
            self.policy.mode != layout.MODE_BUDGET
            or entry.step_count <= WARM_UP
            or entry.first_traces >= self._first_traces
        ):
            return False
        if self._should_yield():
            entry.was_postponed = True
            return False
        entry.first_traces += 1
        return True

    def _mark_known(self, key: int) -> None:
        # The set is bounded, even if a job uses new keys all the time.
        if len(self.known_keys) < 4096:
            self.known_keys.add(key)

    # -- effects of a trace on later steps -------------------------------------------------------

    def _should_retrace(self) -> bool:
        """Return whether to trace again, because a trace has increased the page faults of steps."""
        faults = self._faults
        if not faults.is_comparing:
            return False
        if self._retraces_left:
            self._retraces_left -= 1
            return True
        rise = faults.rise()
        if rise is None:
            return False
        has_risen = rise > FAULTS_MIN and rise * FAULT_NS * MILLION > self.policy.budget * self._usual_duration()
        self._classify_watched(has_risen)
        if has_risen and self._tries < TRIES:
            self._tries += 1
            self._retraces_left = FIRST_TRACES - 1
            return True
        if has_risen:
            self.lasting_faults = rise
        self._tries = 0
        faults.accept()
        return False

    def _classify_watched(self, are_slowed: bool) -> None:
        """Count the watched steps as normal ones, or as slowed down by a trace."""
        for entry, duration in self._watched:
            (entry.slowed if are_slowed else entry.untraced).append(duration)
        del self._watched[:]

    # -- costs -----------------------------------------------------------------------------------

    @staticmethod
    def _extra(entry: _KeyStats, duration: int) -> int:
        """Estimate the extra time of a traced step.

        Its duration is cut at twice the median of traced steps.
        """
        traced = median(entry.traced) if entry.traced else duration
        return _excess(median(entry.untraced), min(duration, 2 * traced))

    def _extra_after_trace(self, entry: _KeyStats, duration: int) -> int:
        """Return the extra time of the step after a traced one.

        If this step is shorter than usual, the difference is subtracted from the extra time of the
        next step after a traced one.
        """
        if len(entry.untraced) < SAMPLES:
            entry.slowed.append(duration)
            return 0
        usual = median(entry.untraced)
        self._unreported_ns = max(self._unreported_ns + min(duration, 2 * usual) - usual, -usual)
        extra = max(self._unreported_ns, 0)
        self._unreported_ns -= extra
        if self._costs:
            self._costs[-1] += extra
        return extra

    def _usual_duration(self) -> int:
        """Return the median over the keys of the median untraced duration, 0 if none is known."""
        return median([median(entry.untraced) for entry in self._keys.values() if entry.untraced] or [0])

    # -- decisions and plans: for each mode, whether a step is traced, and the next trigger ------

    def _trace_none(self, ordinal: int) -> bool:
        self.trigger = self._plan(self, ordinal)
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
        starts = [max(first, ordinal + 1) for first, last in self.policy.ranges if last > ordinal]
        return min(starts) if starts else NEVER

    def _plan_budget(self, ordinal: int) -> int:
        """Return the step at which another trace fits the budget.

        A varying delay is added, so that traces do not coincide with a period of the job.
        """
        self._probe_steps = PROBE_STEPS
        usual = self._usual_duration()
        if not usual:
            return ordinal + 1
        elapsed, spent = self._totals()
        wait_ns = (spent + self._next_cost()) * MILLION // self.policy.budget - elapsed
        wait = max(wait_ns // usual, self.wait_min)
        wait += wait * (ordinal * 2654435761 % 97) // 388
        self.wait_ns = wait * usual
        return ordinal + wait

    def _next_cost(self) -> int:
        return median(self._costs) if self._costs else self._usual_duration()


def _excess(usual: int, duration: int) -> int:
    """Return how much ``duration`` exceeds ``usual``; outliers are cut at ten times ``usual``."""
    return max(0, min(duration, 10 * usual) - usual)


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
