"""The pace of tracing: which steps of a kind are traced under a policy."""

from __future__ import annotations

from typing import Callable

from ...formats import layout
from ...formats.policy import MILLION, NEVER, Policy
from .durations import Durations, KeyDurations

WARM_UP = 2  # first steps of a key, which are not traced: they compile
EARLY_TRACES = 2  # further traces of the kind that are made even if the first ones have used up the budget,
EARLY_NS = 250000000  # the first of them this time in steps after the trace before, ns
EARLY_FACTOR = 8  # the next ones after this many times the time of the one before
PROBE_STEPS = 2  # untraced steps measured before each trace, since steps change
RETRY_STEPS = 32  # steps between two calls of should_yield


class TracePacer(object):
    """Decides which steps of one kind are traced.

    A step whose ordinal is below ``trigger`` and whose key is in ``known_keys`` is not traced, and
    needs no call. All other steps call ``should_trace``, then ``note_traced`` or ``note_untraced``.
    Under a budget, one step of each key is traced after its warm-up, and EARLY_TRACES steps of the
    kind soon after. All others have to fit the budget.

    ``totals`` returns (time in steps, cost of profiling) so far, ns. ``should_yield`` returns
    whether steps of another kind come first. If the budget refuses a trace, ``wait_ns`` is set to
    the time that the steps up to ``trigger`` are expected to take; the caller sets it to 0.
    """

    def __init__(
        self, policy: Policy, totals: Callable[[], tuple[int, int]], should_yield: Callable[[], bool] = bool
    ) -> None:
        self.known_keys: set[int] = set()
        self.wait_ns = 0
        self._totals = totals
        self._should_yield = should_yield
        self._durations = Durations()
        self.note_traced = self._durations.note_traced
        self._early_traces = EARLY_TRACES  # how many of them are left
        self._early_at = 0  # time in steps at which the next of them is due
        self._probe_steps = 0  # untraced steps to measure before the next trace
        self.last_selected = -1  # ordinal of the last selected step
        self._is_after_trace = False  # whether the current step directly follows the last selected one
        self.follow(policy)

    def follow(self, policy: Policy, max_traced: int = NEVER) -> None:
        """Follow ``policy`` for at most ``max_traced`` traced steps, and keep the measurements."""
        self.policy = policy
        self._traces_left = max_traced  # steps that may still be traced
        self.known_keys.clear()
        self._plan(0)

    def is_finished(self, ordinal: int) -> bool:
        """Return whether the policy, or its maximum number, selects no step after ``ordinal``."""
        return self._traces_left <= 0 or (self.policy.mode == layout.MODE_STEPS and ordinal >= self.policy.last)

    def should_trace(self, ordinal: int, key: int, count: int = 1) -> bool:
        """Return whether step ``ordinal`` (from 1), which counts as ``count`` steps, is traced."""
        entry = self._durations.entry(key)
        if ordinal + count - 1 == self.last_selected and self.policy.mode != layout.MODE_OFF:
            return True  # a batch that was selected found no data, and the next one has its number
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
        durations = self._durations
        entry = durations.existing(key)
        if entry.step_count <= 1:
            return 0
        if self._probe_steps:
            self._probe_steps -= 1
        if self._is_after_trace:
            self._is_after_trace = False
            return durations.extra_after_trace(entry, duration)
        entry.untraced.append(duration)
        if not entry.is_estimated:
            return 0
        if (entry.has_first_trace or self.policy.mode != layout.MODE_BUDGET) and not entry.is_shared:
            self._mark_known(key)
        return durations.extra_of_pending(entry)

    # -- the first trace of a key ----------------------------------------------------------------

    def _is_first_trace(self, key: int, entry: KeyDurations) -> bool:
        """Return whether this is the step after the warm-up, traced for the sake of short jobs."""
        if (self.policy.mode == layout.MODE_OFF and not entry.pending) or self._durations.may_be_late(entry):
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

    # -- plans -----------------------------------------------------------------------------------

    def _fits_budget(self, ordinal: int) -> bool:
        """Return whether the budget allows a trace, after some untraced steps for comparison."""
        elapsed, spent = self._totals()
        is_early = self._early_traces > 0 and elapsed >= self._early_at
        if not is_early and (spent + self._durations.next_cost()) * MILLION > self.policy.budget * elapsed:
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
        usual = self._durations.usual()
        if not usual:
            self.trigger = ordinal + 1
            return
        elapsed, spent = self._totals()
        wait_ns = (spent + self._durations.next_cost()) * MILLION // self.policy.budget - elapsed
        if self._early_traces:
            wait_ns = min(wait_ns, self._early_at - elapsed)
        wait = max(wait_ns // usual, 1)
        wait += wait * (ordinal * 2654435761 % 97) // 388
        self.wait_ns = wait * usual
        self.trigger = ordinal + wait
