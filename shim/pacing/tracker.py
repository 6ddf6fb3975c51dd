"""The steps of one kind in this process: ordinals, timing, traces, and access to the channel."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Container, Tuple

from ...formats import layout
from ...formats.layout import WORD
from ...formats.policy import NEVER
from ..channel.ring import Channel
from ..clock import mono
from ..guard import guarded
from ..reentrant_guard import ReentrantGuard
from .costs import KindCost
from .current_policy import POLICY, CurrentPolicy
from .ordinals import Ordinals
from .pacer import TracePacer
from .sampling import TIMING_FACTOR, Sampling

Put = Callable[..., None]  # see SpanWriter.put
OpenChannel = Tuple["Channel", Put, "CurrentPolicy"]  # by name: typing keeps classes of its aliases for ever
NoChannelYet = Tuple[()]

_END_CHECK_NS = 250000000  # approximate time between two checks whether a bounded order has ended
_END_CHECK_STEPS = 256  # maximum steps between two such checks, since steps may become longer
_TIMES = layout.TIMES_AT // 8
_TRACED, _EXTRA, _SELF = WORD["traced"], WORD["extra_ns"], WORD["self_ns"]


class Tracker(object):
    """Steps of ``kind``; the wrappers around the job's calls use its fields directly.

    A step that begins calls ``take_untimed``, which returns its ordinal if it is only counted:

    1. A step that is only counted calls ``put_failed`` if it fails. Any other step takes its
       ordinal of ``next``.
    2. If ``is_surely_untraced(ordinal, key)``, its time is passed to ``put_timed``.
    3. Otherwise ``level`` decides whether the step is traced.

    ``put`` writes a span: (kind, start, duration, ordinal, key, flags, parent, count, counted).
    Before the first step and in a forked child there is no channel: ``trigger`` is 0, no step is
    only counted, and ``level`` opens the channel, as ``open`` does.
    """

    def __init__(
        self,
        kind: int,
        ensure_channel: Callable[[], OpenChannel | NoChannelYet | None],
        counted_ns: int = 0,
        recorder: Callable[[], Any] = bool,
    ) -> None:
        """``counted_ns`` is the cost of counting a step; ``recorder`` returns what records one."""
        self.kind = kind
        self.recorder = recorder
        self._counted_ns = counted_ns
        # This returns (channel, put, policy), () while the process has no channel yet, and None if
        # there will be no channel.
        self._ensure_channel = ensure_channel
        self.ordinals = Ordinals()
        self.take_untimed = self.ordinals.take_untimed
        self.forget()

    def forget(self) -> None:
        """Start again, as in a forked child: without a channel, at step 1."""
        # Protects the pacer. A forked child needs a new guard: a thread of the parent may hold it.
        self._pacer_guard = ReentrantGuard()
        self.channel: Channel | None = None
        self.cost = KindCost()
        self.put: Put = lambda *_span: None
        self._sampling = Sampling(self._counted_ns)
        ordinals = self.ordinals  # the same object, since others refer to its methods
        ordinals.word = ordinals.order = 0  # before the memory there may be unmapped
        self._counter: ctypes.c_uint64 | None = None
        ordinals.last = ordinals.counted = ordinals.timed_at = ordinals.generation = 0
        self.next = ordinals.next
        self.words = _NO_WORDS
        self.generation = 0
        self._current_policy: CurrentPolicy | None = None
        self._decision_at = NEVER  # time in steps, ns, at which the pacer decides, even if the trigger is far
        self._revision = 0  # of the policy that the pacer follows
        self._end_check_at = NEVER  # step that checks whether the order in force has ended
        self._last_end_check = (0, 0)  # the last step that checked, and when (ns)
        self.known_keys: Container[int] = frozenset()
        self.published_keys: set[int] = set()  # keys whose names are in the hello, or beyond its maximum
        self.pacer: TracePacer | None = None
        self.trigger = 0

    def stop(self) -> None:
        """Stop tracing and counting."""
        self.forget()
        self.known_keys = range(1 << 64)  # all keys
        self.trigger = NEVER
        self.ordinals.timed_at = NEVER

    def is_surely_untraced(self, ordinal: int, key: int, count: int = 1) -> bool:
        """Return whether none of ``count`` steps from ``ordinal`` on can be traced."""
        return ordinal + count <= self.trigger and self.words[POLICY] == self.generation and key in self.known_keys

    def put_timed(self, start: int, duration: int, ordinal: int, key: int, work_start: int = 0) -> None:
        """Put the span of a timed step, and of the steps before it that were only counted.

        If steps are too short to time each one, choose how many of the next are only counted.
        ``work_start`` is the time at which our own work began, if that was later than the step's
        end.
        """
        work_start = work_start or start + duration
        counted = 0 if self.ordinals.timed_at > ordinal + 1 else self._choose_skip(ordinal, duration) or 0
        self.put(self.kind, start, duration, ordinal, key, 0, 0, 1, counted)
        own_ns = TIMING_FACTOR * (mono() - work_start)
        self.spend(self._sampling.cost(own_ns, counted))

    def decide_if_due(self, ordinal: int) -> None:
        """Let the pacer decide about the step after ``ordinal`` if its planned time has passed."""
        if self.pacer is not None and self.words[_TIMES + self.kind] >= self._decision_at:
            self._decision_at = NEVER
            self.pacer.trigger = min(self.pacer.trigger, ordinal + 1)
            self.trigger = min(self.trigger, self.pacer.trigger)

    def spend(self, own_ns: int, extra: int = 0) -> None:
        """Add to the cost: our own work, and the ``extra`` ns by which traced steps took longer."""
        self.cost.spent += own_ns + extra
        self.words[_SELF] += own_ns
        if extra:
            self.words[_EXTRA] += extra

    def announce_name(self, key: int, name: str) -> None:
        """Publish ``name`` for steps with ``key``, which is not in ``published_keys`` yet."""
        self.open()
        hello = None if self.channel is None else self.channel.hello
        if hello is not None:
            self.spend(hello.publish(key, name, self.published_keys) or 0)

    def put_failed(self, ordinal: int, key: int) -> None:
        """Put a span without a time for a step that was only counted and failed."""
        self.ordinals.counted -= 1
        self.put(self.kind, mono(), 0, ordinal, key, layout.FLAG_FAILED | layout.FLAG_SAMPLED)

    @guarded
    def open(self) -> None:
        """Open the channel before the first step."""
        if self.channel is None:
            self._begin()

    @guarded
    def level(self, ordinal: int, key: int, count: int = 1, batch: Any = None) -> int | None:
        """Return the policy's trace level for step ``ordinal``, None when the step is not traced.

        The step counts as ``count`` steps. If it is traced, it is recorded as ``batch``.
        """
        if self.channel is None and not self._begin():
            return None
        now, current_policy, pacer, channel = mono(), self._current_policy, self.pacer, self.channel
        if current_policy is None or pacer is None or channel is None:  # stopped meanwhile by another thread
            return None
        if self.words[POLICY] != self.generation or current_policy.is_bounded:
            self._check_orders(current_policy, pacer, ordinal, now, batch)
            if self.channel is None:  # the order was to detach
                return None
        is_attended = current_policy.is_attended(now)
        if current_policy.revision != self._revision:
            self._follow(current_policy, pacer)
        if not is_attended and pacer.policy.mode != layout.MODE_OFF:
            return None
        is_selected = self._call_pacer(pacer.should_trace, ordinal, key, count)
        self.trigger = min(pacer.trigger, self._end_check_at)
        if pacer.wait_ns:
            self._decision_at, pacer.wait_ns = self.words[_TIMES + self.kind] + pacer.wait_ns, 0
        # Without a record ring, a trace would only cost time.
        return pacer.policy.level if is_selected and channel.ring_problem is None else None

    def count_missed(self, ordinal: int, count: int = 1) -> None:
        """Count a missed step if the policy selects one of ``count`` steps from ``ordinal`` on."""
        pacer, channel = self.pacer, self.channel
        if channel is None or pacer is None or pacer.is_finished(-1):
            return
        if pacer.policy.next_selected(ordinal) < ordinal + count:
            channel.count_missed_step()

    @guarded
    def note_untraced(self, key: int, duration: int) -> None:
        """Record a step that called ``level`` and was not traced."""
        if self.pacer is not None:
            self.cost.traceable = True
            self.spend(0, self._call_pacer(self.pacer.note_untraced, key, duration))

    @guarded
    def note_traced(self, key: int, duration: int, own_ns: int, requested_by_job: bool = False) -> None:
        """Record a traced step and our own work for it, ns.

        ``requested_by_job``: the job itself requested the trace.
        """
        if self.pacer is None:
            return
        self.words[_TRACED] += 1
        self.cost.traceable = True
        self.cost.traced += 1
        self.spend(own_ns, 0 if requested_by_job else self._call_pacer(self.pacer.note_traced, key, duration, own_ns))
        if self._current_policy is not None and not requested_by_job:
            self._current_policy.count_traced()
            if self.pacer.is_finished(self.pacer.last_selected):
                self._current_policy.end_if_finished(self.kind, self._revision)

    def _call_pacer(self, method: Callable[..., int | None], *args: object) -> int:
        """Call ``method`` of the pacer under its lock; 0 on re-entry, as from a signal handler."""
        return self._pacer_guard.call(method, *args) or 0

    @guarded
    def _choose_skip(self, ordinal: int, duration: int) -> int:
        """Choose how many steps are only counted after step ``ordinal``.

        Return how many were only counted before it. A step that may be traced is timed. Steps of
        some kinds are never traced themselves, but session runs within them are, whatever the
        number of the step.
        """
        counted: int = self.ordinals.take_counted()
        pacer = self.pacer
        if pacer is None:
            return counted
        number = self._sampling.skip(ordinal, duration, pacer.policy.budget)
        self.decide_if_due(ordinal)
        if self.cost.traceable:
            number = min(number, self.trigger - ordinal - 1)
        self.ordinals.timed_at = ordinal + 1 + number
        return counted

    def _begin(self) -> bool:
        """Open the channel and start the pacer; False if there is no channel."""
        opened = self._ensure_channel()
        if not opened:
            if opened is None:
                self.stop()
            return False
        channel, self.put, self._current_policy = opened
        self.words = channel.words
        self._counter = counter = ctypes.c_uint64.from_buffer(channel.words, layout.COUNTS_AT + 8 * self.kind)
        self.ordinals.word = ctypes.addressof(counter)
        self.ordinals.order = self.ordinals.word + 8 * POLICY - layout.COUNTS_AT - 8 * self.kind
        kind, current_policy, costs = self.kind, self._current_policy, self._current_policy.costs
        self.cost = costs.of_kind(kind)
        self._revision = current_policy.revision
        self.pacer = TracePacer(
            current_policy.policy,
            lambda: costs.totals(kind, current_policy.policy.budget),
            should_yield=lambda: costs.should_yield(kind),
        )
        self.known_keys, self.trigger = self.pacer.known_keys, self.pacer.trigger
        self.channel = channel  # set last: after an exception, the next step opens the channel again
        return True

    def _check_orders(
        self, current_policy: CurrentPolicy, pacer: TracePacer, ordinal: int, now: int, batch: Any
    ) -> None:
        """Check for a new order and for the end of the one in force; choose the next check."""
        if current_policy.is_bounded and current_policy.revision == self._revision and pacer.is_finished(ordinal - 1):
            current_policy.end_if_finished(self.kind, self._revision)
        current_policy.update(now, self.kind, ordinal, batch)
        if self.channel is None:
            return
        if self.generation != current_policy.generation:
            self.generation = current_policy.generation
            self.ordinals.timed_at, self.ordinals.generation = 0, self.generation
        (last, last_ns), self._last_end_check = self._last_end_check, (ordinal, now)
        interval = (ordinal - last) * _END_CHECK_NS // max(now - last_ns, 1)
        self._end_check_at = ordinal + max(1, min(interval, _END_CHECK_STEPS))

    def _follow(self, current_policy: CurrentPolicy, pacer: TracePacer) -> None:
        self._revision = current_policy.revision
        self._decision_at = NEVER
        if not current_policy.is_bounded:
            self._end_check_at = NEVER
        self._call_pacer(pacer.follow, current_policy.policy, current_policy.max_traced or NEVER)


_NO_WORDS: Any = [0] * (max(WORD.values()) + 1)
