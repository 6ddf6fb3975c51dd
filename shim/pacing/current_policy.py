"""The policy in force in a process: from the environment, or the last order (docs/channel.md)."""

from __future__ import annotations

from typing import Any, Callable

from ...formats import layout
from ...formats.layout import WORD
from ...formats.policy import NEVER, Policy, PolicyError
from ...formats.step_kinds import main_kind
from ..reentrant_guard import ReentrantGuard
from .costs import Costs, Kinds

POLICY = WORD["policy"]
_POLICY_WORDS = [WORD["policy_" + name] for name in ("mode", "level", "first", "last", "every", "budget")]
_COUNT, _END, _RANGES = WORD["policy_count"], WORD["policy_end_ns"], WORD["policy_ranges"]
_WRITING, _DETACH, _ORDER_END = WORD["policy_writing"], WORD["detach"], WORD["order_end"]
_BEAT = WORD["agent_beat_ns"]
_SEEN, _REFUSED, _LOST = WORD["policy_seen"], WORD["policy_refused"], WORD["agent_lost"]
_STEP, _KIND, _TRACED, _OVER, _BUDGET = (WORD["order_" + name] for name in ("step", "kind", "traced", "over", "budget"))
_TABLE = layout.RANGES_AT // 8
_TIMES = layout.TIMES_AT // 8
_OFF = Policy(layout.MODE_OFF)
#: Extra wait (ns) before a silent agent counts as lost. If job and agent were suspended, the agent
#: sends a heartbeat within this time.
_GRACE_NS = 5 * 10**9
Call = Callable[..., object]


class CurrentPolicy(object):
    """The policy in force; an order, the end of an order, or the loss of the agent changes it.

    ``revision`` grows with each change. ``generation`` is that of the last policy read from the
    channel. ``max_traced`` is the maximum number of traced steps of each kind under the order in
    force, 0 for no limit. ``is_bounded``: the order ends by itself. ``detach`` disarms the shim.
    ``costs`` are the costs of tracing. ``update`` and ``end_if_finished`` are called under
    ``guard``.
    """

    def __init__(
        self, words: memoryview[int], policy: Policy, report: Call, detach: Call, created_ns: int, kinds: Kinds
    ) -> None:
        self.policy = policy
        self.revision = 0
        self.generation = 0
        self.max_traced = 0
        self.is_bounded = False
        self.costs = Costs(words, kinds)
        self._words = words
        self._initial_policy = policy
        self._base_policy = policy  # in force again after the end of an order
        self._report = report
        self._detach = detach
        self._end_ns = 0
        self._times: dict[int, int] = {}  # time in steps by step kind at the order's start
        # Kinds of steps since the order's start, without kinds whose steps consist of other steps.
        self._kinds: set[int] = set()
        self._beat = 0
        self._beat_ns = created_ns  # local time of the agent's last heartbeat; at first the channel's creation
        self._silent_since_ns = 0
        self.guard = ReentrantGuard()

    def update(self, now: int, kind: int, ordinal: int, batch: Any = None) -> None:
        """Apply a new order at step ``ordinal`` of ``kind``; end an order that expired by ``now``.

        ``now`` is in ns on the monotonic clock. If the step is traced, it is recorded as ``batch``.
        """
        if self._words[POLICY] != self.generation:
            self._apply(kind, ordinal, now, batch)
        self._kinds.add(kind)
        if self._end_ns and now >= self._end_ns:
            self._end()

    def count_traced(self) -> None:
        """Count a traced step of the order, unless the order is over: it did not select it."""
        if self._words[_OVER] != self.generation:
            self._words[_TRACED] += 1

    def end_if_finished(self, kind: int, revision: int) -> None:
        """End the order of ``revision`` if ``kind`` is the main kind since the order's start.

        The caller has traced all steps of ``kind`` that the order selects.
        """
        if self.is_bounded and revision == self.revision and self._main_kind(kind) == kind:
            self._end()

    def _main_kind(self, default: int) -> int | None:
        """Return the main kind since the order's start, ``default`` without steps."""
        times = {kind: self._words[_TIMES + kind] - self._times[kind] for kind in self._kinds if kind in self._times}
        return main_kind({kind: time for kind, time in times.items() if time} or {default: 1}, self.costs.known_kinds)

    def is_attended(self, now: int) -> bool:
        """Return whether an agent receives records at ``now`` (ns).

        An agent that stays silent is lost: no step is traced until the next order.
        """
        beat = self._words[_BEAT]
        if beat != self._beat:
            # Local time, since the clock of an agent outside of a container may differ.
            self._beat, self._beat_ns = beat, (now if self._silent_since_ns else min(now, max(beat, self._beat_ns)))
            self._silent_since_ns = 0
        if now - self._beat_ns < layout.AGENT_SILENCE_NS:
            return True
        if not self._silent_since_ns:
            self._silent_since_ns = now
        elif now - self._silent_since_ns >= _GRACE_NS and self.policy.mode != layout.MODE_OFF:
            self._words[_LOST], self._words[_OVER] = 1, self.generation
            self._set_policy(_OFF)
        return False

    def _apply(self, kind: int, ordinal: int, now: int, batch: Any) -> None:
        """Apply the policy in the agent's words; an invalid one is refused and changes nothing."""
        words = self._words
        generation = words[POLICY]
        policy_words = [words[at] for at in _POLICY_WORDS]
        count, end_ns, detach, order_end = words[_COUNT], words[_END], words[_DETACH], words[_ORDER_END]
        range_count = min(words[_RANGES], layout.RANGES_MAX)
        table = [words[_TABLE + at] for at in range(2 * range_count)]
        if words[_WRITING] or words[POLICY] != generation:
            return  # the words are being written: the next step reads them again
        self.generation = generation
        try:
            policy = Policy.from_words(policy_words, tuple(zip(table[::2], table[1::2])))
        except PolicyError as error:
            words[_REFUSED] = generation
            self._report(error.slug, error.args[0])
            return
        first = policy.next_selected(ordinal)
        wait = 0 if first == NEVER else first - ordinal
        if batch is not None:
            kind, ordinal = batch.tracker.kind, batch.ordinal
        for at, value in ((_TRACED, 0), (_STEP, ordinal + wait), (_KIND, kind), (_LOST, 0), (_SEEN, generation)):
            words[at] = value
        # An order proves that an agent is alive.
        self._silent_since_ns, self._beat, self._beat_ns = 0, words[_BEAT], now
        if detach:
            self._detach()
            return
        if order_end and not self.is_bounded:
            self._base_policy = self._initial_policy
        self._times = {step_kind: words[_TIMES + step_kind] for step_kind in range(layout.KINDS_MAX)}
        self._kinds.clear()
        self._set_policy(policy, count, end_ns, bool(count or end_ns or policy.mode == layout.MODE_STEPS))
        if not self.is_bounded:
            self._base_policy = policy

    def _end(self) -> None:
        self._words[_OVER] = self.generation
        self._set_policy(self._base_policy)

    def _set_policy(self, policy: Policy, max_traced: int = 0, end_ns: int = 0, is_bounded: bool = False) -> None:
        """Put ``policy`` in force, for the job and for readers of the channel."""
        self._words[_BUDGET] = 0 if policy is self._initial_policy else policy.budget
        self.policy, self.max_traced, self._end_ns, self.is_bounded = policy, max_traced, end_ns, is_bounded
        self.revision += 1
