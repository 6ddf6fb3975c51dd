"""The choice of the traced steps of one kind, under the policy in force."""

from __future__ import annotations

from typing import Any, Callable

from ...formats import layout
from ...formats.policy import NEVER
from ..clock import mono
from ..reentrant_guard import ReentrantGuard
from .current_policy import POLICY, CurrentPolicy
from .pacer import TracePacer

_END_CHECK_NS = 250000000  # approximate time between two checks whether a bounded order has ended
_END_CHECK_STEPS = 256  # maximum steps between two such checks, since steps may become longer
_TIMES = layout.TIMES_AT // 8


class Selection(object):
    """Lets a pacer choose the traced steps of ``kind``; ``words`` are those of the channel.

    ``trigger`` is the pacer's, or an earlier step; ``generation`` is that of the order in force.
    """

    def __init__(self, kind: int, words: memoryview[int], current_policy: CurrentPolicy) -> None:
        costs = current_policy.costs
        self.generation = 0
        self.pacer = TracePacer(
            current_policy.policy,
            lambda: costs.totals(kind, current_policy.policy.budget),
            should_yield=lambda: costs.should_yield(kind),
        )
        self.trigger = self.pacer.trigger
        self._kind, self._words, self._current_policy = kind, words, current_policy
        self._guard = ReentrantGuard()  # of the pacer
        self._revision = current_policy.revision  # of the policy that the pacer follows
        self._decision_at = NEVER  # time in steps, ns, at which the pacer decides, even if the trigger is far
        self._end_check_at = NEVER  # step that checks whether the order in force has ended
        self._last_end_check = (0, 0)  # the last step that checked, and when (ns)

    def level(self, ordinal: int, key: int, count: int, batch: Any) -> int | None:
        """Return the policy's trace level for step ``ordinal``, None when the step is not traced.

        The step counts as ``count`` steps. If it is traced, it is recorded as ``batch``.
        """
        now, current_policy, pacer = mono(), self._current_policy, self.pacer
        if self._words[POLICY] != self.generation or current_policy.is_bounded:
            self._check_orders(ordinal, now, batch)
        is_attended = current_policy.is_attended(now)
        if current_policy.revision != self._revision:
            self._follow()
        if not is_attended and pacer.policy.mode != layout.MODE_OFF:
            return None
        is_selected = self._call_pacer(pacer.should_trace, ordinal, key, count)
        self.trigger = min(pacer.trigger, self._end_check_at)
        if pacer.wait_ns:
            self._decision_at, pacer.wait_ns = self._words[_TIMES + self._kind] + pacer.wait_ns, 0
        return pacer.policy.level if is_selected else None

    def decide_if_due(self, ordinal: int) -> None:
        """Let the pacer decide about the step after ``ordinal`` if its planned time has passed."""
        if self._words[_TIMES + self._kind] >= self._decision_at:
            self._decision_at = NEVER
            self.pacer.trigger = min(self.pacer.trigger, ordinal + 1)
            self.trigger = min(self.trigger, self.pacer.trigger)

    def selects_one_of(self, ordinal: int, count: int) -> bool:
        """Return whether the policy selects one of ``count`` steps from ``ordinal`` on."""
        pacer = self.pacer
        return not pacer.is_finished(-1) and pacer.policy.next_selected(ordinal) < ordinal + count

    def note_untraced(self, key: int, duration: int) -> int:
        """Record an untraced step; return the extra time of traced steps that is now known, ns."""
        return self._call_pacer(self.pacer.note_untraced, key, duration)

    def note_traced(self, key: int, duration: int, own_ns: int) -> int:
        """Record a traced step and our own work for it, ns; return its extra time, 0 if unknown."""
        extra = self._call_pacer(self.pacer.note_traced, key, duration, own_ns)
        self._current_policy.count_traced()
        if self.pacer.is_finished(self.pacer.last_selected):
            policy = self._current_policy
            policy.guard.call(policy.end_if_finished, self._kind, self._revision)
        return extra

    def _call_pacer(self, method: Callable[..., int | None], *args: object) -> int:
        """Call ``method`` of the pacer under its lock; 0 on re-entry, as from a signal handler."""
        return self._guard.call(method, *args) or 0

    def _check_orders(self, ordinal: int, now: int, batch: Any) -> None:
        """Check for a new order and for the end of the one in force; choose the next check."""
        policy, revision = self._current_policy, self._revision
        if policy.is_bounded and policy.revision == revision and self.pacer.is_finished(ordinal - 1):
            policy.guard.call(policy.end_if_finished, self._kind, revision)
        policy.guard.call(policy.update, now, self._kind, ordinal, batch)
        self.generation = policy.generation
        (last, last_ns), self._last_end_check = self._last_end_check, (ordinal, now)
        interval = (ordinal - last) * _END_CHECK_NS // max(now - last_ns, 1)
        self._end_check_at = ordinal + max(1, min(interval, _END_CHECK_STEPS))

    def _follow(self) -> None:
        policy = self._current_policy
        self._revision = policy.revision
        self._decision_at = NEVER
        if not policy.is_bounded:
            self._end_check_at = NEVER
        self._call_pacer(self.pacer.follow, policy.policy, policy.max_traced or NEVER)
