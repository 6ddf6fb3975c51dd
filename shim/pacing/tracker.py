"""The steps of one kind in this process: ordinals, timing, and access to the channel."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Container, Tuple

from ...formats import layout
from ...formats.layout import WORD
from ...formats.policy import NEVER
from ..channel.ring import Channel
from ..clock import mono
from ..guard import guarded
from .costs import KindCost
from .current_policy import POLICY, CurrentPolicy
from .ordinals import Ordinals
from .sampling import TIMING_FACTOR, Sampling
from .selection import Selection

Put = Callable[..., None]  # see SpanWriter.put
OpenChannel = Tuple["Channel", Put, "CurrentPolicy"]  # by name: typing keeps classes of its aliases for ever
NoChannelYet = Tuple[()]

_TRACED, _MISSED, _EXTRA, _SELF = (WORD[name] for name in ("traced", "missed", "extra_ns", "self_ns"))


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
        self.channel: Channel | None = None
        self.cost = KindCost()
        self.put: Put = lambda *_span: None
        self._sampling = Sampling(self._counted_ns)
        self._timed_ns = 0  # end of the last timed step
        ordinals = self.ordinals  # the same object, since others refer to its methods
        ordinals.word = ordinals.order = 0  # before the memory there may be unmapped
        self._counter: ctypes.c_uint64 | None = None
        ordinals.last = ordinals.counted = ordinals.timed_at = ordinals.generation = 0
        self.next = ordinals.next
        self.words = _NO_WORDS
        self.generation = 0
        self.known_keys: Container[int] = frozenset()
        self.published_keys: set[int] = set()  # keys whose names are in the hello, or beyond its maximum
        self.selection: Selection | None = None  # of the traced steps
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
        counted = 0 if self.ordinals.timed_at > ordinal + 1 else self._choose_skip(start, duration, ordinal) or 0
        self.put(self.kind, start, duration, ordinal, key, 0, 0, 1, counted)
        own_ns = TIMING_FACTOR * (mono() - work_start)
        self.spend(self._sampling.cost(own_ns, counted))

    def decide_if_due(self, ordinal: int) -> None:
        """Let the step after ``ordinal`` be selected if the planned time of a trace has passed."""
        selection = self.selection
        if selection is not None:
            selection.decide_if_due(ordinal)
            self.trigger = selection.trigger

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
        selection, channel = self.selection, self.channel
        if selection is None or channel is None:  # stopped meanwhile by another thread
            return None
        level = selection.level(ordinal, key, count, batch)
        if self.selection is not selection:  # the order was to detach
            return None
        self.trigger = selection.trigger
        if self.generation != selection.generation:
            self.generation = selection.generation
            self.ordinals.timed_at, self.ordinals.generation = 0, self.generation
        # Without a record ring, a trace would only cost time.
        return level if channel.ring_problem is None else None

    def count_missed(self, ordinal: int, count: int = 1) -> None:
        """Count a missed step if the policy selects one of ``count`` steps from ``ordinal`` on."""
        selection = self.selection
        if selection is not None and selection.selects_one_of(ordinal, count):
            self.words[_MISSED] += 1

    @guarded
    def note_untraced(self, key: int, duration: int) -> None:
        """Record a step that called ``level`` and was not traced."""
        selection = self.selection
        if selection is not None:
            self.cost.traceable = True
            self.spend(0, selection.note_untraced(key, duration))

    @guarded
    def note_traced(self, key: int, duration: int, own_ns: int, requested_by_job: bool = False) -> None:
        """Record a traced step and our own work for it, ns.

        ``requested_by_job``: the job itself requested the trace.
        """
        selection = self.selection
        if selection is None:
            return
        self.words[_TRACED] += 1
        self.cost.traceable = True
        self.cost.traced += 1
        self.spend(own_ns, 0 if requested_by_job else selection.note_traced(key, duration, own_ns))

    @guarded
    def _choose_skip(self, start: int, duration: int, ordinal: int) -> int:
        """Choose how many steps are only counted after step ``ordinal``: those of a second at most.

        Return how many were only counted before it. A step that may be traced is timed, and so is
        the one before it: its entry contains the counted ones. Steps of some kinds are never traced
        themselves, but session runs within them are, whatever the number of the step.
        """
        counted: int = self.ordinals.take_counted()
        period, self._timed_ns = (start + duration - self._timed_ns) // (counted + 1), start + duration
        selection = self.selection
        if selection is None:
            return counted
        number = self._sampling.skip(ordinal, duration, selection.pacer.policy.budget)
        self.decide_if_due(ordinal)
        trigger = self.trigger if self.cost.traceable else NEVER
        number = min(number, layout.SECOND_NS // max(period, 1), trigger - ordinal - 2)
        self.ordinals.timed_at = ordinal + 1 + number
        return counted

    def _begin(self) -> bool:
        """Open the channel and begin to select steps; False if there is no channel."""
        opened = self._ensure_channel()
        if not opened:
            if opened is None:
                self.stop()
            return False
        channel, self.put, current_policy = opened
        self.words = channel.words
        self._counter = counter = ctypes.c_uint64.from_buffer(channel.words, layout.COUNTS_AT + 8 * self.kind)
        self.ordinals.word = ctypes.addressof(counter)
        self.ordinals.order = self.ordinals.word + 8 * POLICY - layout.COUNTS_AT - 8 * self.kind
        self.cost = current_policy.costs.of_kind(self.kind)
        self.selection = selection = Selection(self.kind, channel.words, current_policy)
        self.known_keys, self.trigger = selection.pacer.known_keys, selection.trigger
        self.channel = channel  # set last: after an exception, the next step opens the channel again
        return True


_NO_WORDS: Any = [0] * (max(WORD.values()) + 1)
