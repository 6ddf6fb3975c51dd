"""The pace of tracing: which steps of a kind are traced under a policy."""

from __future__ import annotations

from collections import deque
from typing import Callable, Iterable

from ...formats import layout
from ...formats.policy import MILLION, NEVER, Policy

WARM_UP = 2  # first steps of a key, which are not traced: they compile
EARLY_TRACES = 2  # further traces of the kind that are made even if the first ones have used up the budget,
EARLY_NS = 250000000  # the first of them this time in steps after the trace before, ns
EARLY_FACTOR = 8  # the next ones after this many times the time of the one before
SAMPLES = 5  # number of untraced durations that an estimate needs
PROBE_STEPS = 2  # untraced steps measured before each trace, since steps change
HISTORY = 9  # recent untraced durations kept for each key
PENDING_MAX = 32  # durations kept until an estimate exists
KEYS_MAX = 8  # only this many keys get a first trace
ENTRIES_MAX = 256  # maximum number of keys with statistics of their own
_SEEN_MAX = 4096  # maximum number of keys that are remembered to recognize those that come back
RETRY_STEPS = 32  # steps between two calls of should_yield


class _KeyStats(object):
    """Statistics of the steps of one key; durations are in ns."""

    def __init__(self) -> None:
        self.step_count = 0
        self.has_first_trace = False  # whether its first trace was made, or left to the budget
        self.untraced: deque[int] = deque(maxlen=HISTORY)
        self.traced: deque[int] = deque(maxlen=SAMPLES)
        self.pending: deque[int] = deque(maxlen=PENDING_MAX)  # traced, without an estimate of their extra time yet


class TracePacer(object):
    """Decides which steps of one kind are traced.

    ``totals`` returns (time in steps, cost of profiling) so far, ns. A step whose ordinal is
    below ``trigger`` and whose key is in ``known_keys`` is not traced, and needs no call. All other
    steps call ``should_trace``, then ``note_traced`` or ``note_untraced`` with their duration.
    Under a budget, one step of each key is traced after its warm-up, and EARLY_TRACES steps of the
    kind soon after. All others have to fit the budget.

    ``should_yield`` returns whether steps of another kind are traced first. If the budget refuses a
    trace, ``wait_ns`` is set to the time that the steps up to ``trigger`` take if they are as long
    as before; the tracker reads it and sets it to 0.
    """

    def __init__(
        self, policy: Policy, totals: Callable[[], tuple[int, int]], should_yield: Callable[[], bool] = bool
    ) -> None:
        self.known_keys: set[int] = set()
        self.wait_ns = 0
        self._totals = totals
        self._should_yield = should_yield
        self._keys: dict[int, _KeyStats] = {}
        self._new_keys = _KeyStats()  # steps of keys that have not come back, such as those of a growing graph
        self._seen_keys: set[int] = set()
        self._costs: deque[int] = deque(maxlen=SAMPLES)  # costs of the last traces, ns
        self._early_traces = EARLY_TRACES  # how many of them are left
        self._early_at = 0  # time in steps at which the next of them is due
        self._probe_steps = 0  # untraced steps to measure before the next trace
        self.last_selected = -1  # ordinal of the last selected step
        self._is_after_trace = False  # whether the current step directly follows the last selected one
        self._unreported_ns = 0  # unreported extra time of steps directly after a trace; negative if they took less
        self.follow(policy)

    def follow(self, policy: Policy, max_traced: int = NEVER) -> None:
        """Follow ``policy`` for at most ``max_traced`` traced steps, and keep the measurements."""
        self.policy = policy
        self._traces_left = max_traced  # steps that may still be traced
        self.known_keys.clear()
        self._plan(0)

    def is_finished(self, ordinal: int) -> bool:
        """Return whether no step after ``ordinal`` is traced.

        This is the case when the maximum number is reached, or the end of the last range.
        """
        return self._traces_left <= 0 or (self.policy.mode == layout.MODE_STEPS and ordinal >= self.policy.last)

    def should_trace(self, ordinal: int, key: int, count: int = 1) -> bool:
        """Return whether step ``ordinal`` (from 1), which counts as ``count`` steps, is traced."""
        entry = self._entry(key)
        entry.step_count += 1
        self._is_after_trace = ordinal == self.last_selected + 1
        if self._traces_left <= 0:
            self.trigger = NEVER
            return False
        is_selected = key not in self.known_keys and self._is_first_trace(key, entry)
        last = ordinal + count - 1
        if not is_selected and last >= self.trigger:
            if self.policy.mode == layout.MODE_BUDGET:
                is_selected = self._fits_budget(last)
            elif self.policy.next_selected(ordinal) <= last:
                is_selected = True
            else:
                self._plan(last)
            if not is_selected and self._is_after_trace:
                self.trigger = last + 1  # measure the next step, too: it shows the effect of the trace
        if is_selected:
            # The trigger is not raised here: an earlier step of another thread may call this later,
            # and the next step must be measured. That step is slower, since it finds cold caches
            # and returned memory.
            self.last_selected, self._probe_steps = last, PROBE_STEPS
            self._traces_left -= 1
            distance = EARLY_NS * EARLY_FACTOR ** (EARLY_TRACES - self._early_traces)
            self._early_at = self._totals()[0] + distance
        return is_selected

    def note_untraced(self, key: int, duration: int) -> int:
        """Record an untraced step; return the extra time of traced steps that is now known, ns."""
        entry = self._keys.get(key, self._new_keys)
        if entry.step_count <= 1:
            return 0
        if self._probe_steps:
            self._probe_steps -= 1
        if self._is_after_trace:
            self._is_after_trace = False
            return self._extra_after_trace(entry, duration)
        entry.untraced.append(duration)
        if len(entry.untraced) < SAMPLES:
            return 0
        if entry is not self._new_keys and (entry.has_first_trace or self.policy.mode != layout.MODE_BUDGET):
            self._mark_known(key)
        extras = [self._extra(entry, each) for each in entry.pending]
        self._costs.extend(extras)
        entry.pending.clear()
        return sum(extras)

    def note_traced(self, key: int, duration: int, own_ns: int) -> int:
        """Record a traced step and our own work for it, ns; return its extra time, 0 if unknown."""
        entry = self._keys.get(key, self._new_keys)
        entry.traced.append(duration)
        if len(entry.untraced) < SAMPLES:
            entry.pending.append(duration)
            return 0
        extra = self._extra(entry, duration)
        self._costs.append(extra + own_ns)
        return extra

    # -- the first trace of a key ----------------------------------------------------------------

    def _entry(self, key: int) -> _KeyStats:
        """Return the statistics of ``key``: its own if it is one of the first, or has come back."""
        entry = self._keys.get(key)
        if entry is None:
            if len(self._keys) >= (ENTRIES_MAX if key in self._seen_keys else KEYS_MAX):
                if len(self._seen_keys) < _SEEN_MAX:
                    self._seen_keys.add(key)
                return self._new_keys
            entry = self._keys[key] = _KeyStats()
        return entry

    def _is_first_trace(self, key: int, entry: _KeyStats) -> bool:
        """Return whether this step is the first of its key that is traced, under a budget.

        It is the step after the warm-up, so that a short job has a profile.
        """
        is_late = len(self._keys) > KEYS_MAX and entry is not self._new_keys
        if (self.policy.mode == layout.MODE_OFF and not entry.pending) or is_late:
            self._mark_known(key)
            return False
        if self.policy.mode != layout.MODE_BUDGET or entry.step_count <= WARM_UP or entry.has_first_trace:
            return False
        entry.has_first_trace = True
        return not self._should_yield()

    def _mark_known(self, key: int) -> None:
        # The set is bounded, even if a job uses new keys all the time.
        if len(self.known_keys) < 4096:
            self.known_keys.add(key)

    # -- costs -----------------------------------------------------------------------------------

    @staticmethod
    def _extra(entry: _KeyStats, duration: int) -> int:
        """Estimate the extra time of a traced step.

        Its duration is cut at twice the median of traced steps, and ten times that of the others.
        """
        usual, traced = median(entry.untraced), median(entry.traced) if entry.traced else duration
        return max(0, min(duration, 2 * traced, 10 * usual) - usual)

    def _extra_after_trace(self, entry: _KeyStats, duration: int) -> int:
        """Return the extra time of the step after a traced one.

        If this step is shorter than usual, the difference is subtracted from the extra time of the
        next step after a traced one.
        """
        if len(entry.untraced) < SAMPLES:
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
        entries = (*self._keys.values(), self._new_keys)
        return median([median(entry.untraced) for entry in entries if entry.untraced] or [0])

    # -- plans -----------------------------------------------------------------------------------

    def _fits_budget(self, ordinal: int) -> bool:
        """Return whether the budget allows a trace, after some untraced steps for comparison."""
        elapsed, spent = self._totals()
        is_early = self._early_traces > 0 and elapsed >= self._early_at
        if not is_early and (spent + self._next_cost()) * MILLION > self.policy.budget * elapsed:
            self._plan(ordinal)
            return False
        if self._probe_steps:
            return False
        if self._should_yield():
            self.trigger = ordinal + RETRY_STEPS
            return False
        self._early_traces -= is_early
        return True

    def _plan(self, ordinal: int) -> None:
        """Set the trigger after step ``ordinal``: the next selected step.

        Under a budget, it is the step at which another trace fits the budget. A varying delay is
        added, so that traces do not coincide with a period of the job.
        """
        if self.policy.mode != layout.MODE_BUDGET:
            self.trigger = self.policy.next_selected(ordinal + 1)
            return
        self._probe_steps = PROBE_STEPS
        usual = self._usual_duration()
        if not usual:
            self.trigger = ordinal + 1
            return
        elapsed, spent = self._totals()
        wait_ns = (spent + self._next_cost()) * MILLION // self.policy.budget - elapsed
        if self._early_traces:
            wait_ns = min(wait_ns, self._early_at - elapsed)
        wait = max(wait_ns // usual, 1)
        wait += wait * (ordinal * 2654435761 % 97) // 388
        self.wait_ns = wait * usual
        self.trigger = ordinal + wait

    def _next_cost(self) -> int:
        return median(self._costs) if self._costs else self._usual_duration()


def median(values: Iterable[int]) -> int:
    """Return the median of ``values``, the upper one of two middle values."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
