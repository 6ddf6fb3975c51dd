"""The steps of one kind in this process: ordinals, timing, traces, and access to the channel."""

from __future__ import annotations

import _thread
import ctypes

from ...formats import layout
from ...formats.layout import WORD
from ...formats.policy import NEVER
from ..clock import mono
from ..guard import contain, guarded
from ..reentrant_guard import ReentrantGuard
from ..tensorflow.names import Names
from .costs import KindCost
from .current_policy import POLICY
from .ordinals import Ordinals, PythonOrdinals
from .pacer import FIRST_TRACES, TracePacer
from .sampling import MARGIN, TIMING_FACTOR, Sampling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Container

    from ..channel.ring import Channel
    from ..channel.spans import Put
    from ..core import NoChannelYet, OpenChannel
    from .costs import Costs
    from .current_policy import CurrentPolicy

_END_CHECK_NS = 250000000  # approximate time between two checks whether a bounded order has ended
_END_CHECK_STEPS = 256  # maximum steps between two such checks, since steps may become longer
_ORDER_CHECK_NS = 75000000  # usual time between two checks for orders while steps are only counted
_LASTING_FAULTS = "each step takes %d more page faults since some were traced, and further traces did not undo this"
_TIMES = layout.TIMES_AT // 8
_TRACED, _EXTRA, _SELF = WORD["traced"], WORD["extra_ns"], WORD["self_ns"]


class Tracker(object):
    """Steps of ``kind``; the wrappers around the job's calls use its fields directly.

    A step that begins takes the next ordinal of ``untimed``, or of ``next()`` if ``untimed`` is
    empty:

    1. With an ordinal of ``untimed``, it is counted, but not timed. If it fails, ``put_failed`` is
       called.
    2. If ``ordinal < trigger and words[POLICY] == generation and key in known_keys``, it is timed,
       and its time is passed to ``put_timed``.
    3. Otherwise ``level`` decides whether the step is traced.

    ``put`` writes a span: (kind, start, duration, ordinal, key, flags, parent, count, counted).
    Before the first step and in a forked child there is no channel: ``trigger`` is 0, ``untimed``
    is empty, and ``level`` opens the channel, as ``open`` does.
    """

    __slots__ = (
        "_counted",
        "_current_policy",
        "_decision_at",
        "_end_check_at",
        "_ensure_channel",
        "_first_traces",
        "_last_end_check",
        "_last_skip",
        "_order_check_interval",
        "_pacer_guard",
        "_revision",
        "_sampling",
        "_skip_lock",
        "channel",
        "cost",
        "count_at",
        "generation",
        "kind",
        "known_keys",
        "names",
        "next",
        "pacer",
        "put",
        "trigger",
        "untimed",
        "words",
    )

    def __init__(
        self,
        kind: int,
        ensure_channel: Callable[[], OpenChannel | NoChannelYet | None],
        first_traces: int = FIRST_TRACES,
    ) -> None:
        self.kind = kind
        # This returns (channel, put, policy), () while the process has no channel yet, and None if
        # there will be no channel.
        self._ensure_channel = ensure_channel
        self._first_traces = first_traces
        self.count_at = layout.COUNTS_AT // 8 + kind
        self.untimed = Ordinals()
        self.next = self.untimed.next
        self.forget()

    def forget(self) -> None:
        """Start again, as in a forked child: without a channel, at step 1."""
        # Protects the pacer. A forked child needs a new guard: a thread of the parent may hold it.
        self._pacer_guard = ReentrantGuard()
        self.channel: Channel | None = None
        self.cost = KindCost()
        self.put: Put = _discard
        self._skip_lock = _thread.RLock()
        self._sampling = Sampling(self.kind, is_python=isinstance(self.untimed, PythonOrdinals))
        self._last_skip = (0, 0)  # the last step that chose how many steps are only counted, and its end (ns)
        self._order_check_interval = 0  # steps from one check for orders to the next
        # Number of steps that were, or are planned to be, only counted and that no span includes
        # yet. It is negative if spans include planned steps that were then not counted.
        self._counted = 0
        self.untimed.reset()
        self.words = _NO_WORDS
        self.generation = 0
        self._current_policy: CurrentPolicy | None = None
        self._decision_at = NEVER  # time in steps, ns, at which the pacer decides, even if the trigger is far
        self._revision = 0  # of the policy that the pacer follows
        self._end_check_at = NEVER  # step that checks whether the order in force has ended
        self._last_end_check = (0, 0)  # the last step that checked, and when (ns)
        self.known_keys: Container[int] = frozenset()
        self.names = Names()
        self.pacer: TracePacer | None = None
        self.trigger = 0

    def stop(self) -> None:
        """Stop tracing and counting."""
        self.forget()
        self.known_keys = _AllKeys()
        self.trigger = NEVER
        self.untimed.skip(NEVER, NEVER)

    def put_timed(self, start: int, duration: int, ordinal: int, key: int, work_start: int = 0) -> None:
        """Put the span of a step that found ``untimed`` empty, and of the steps counted before it.

        If steps are too short to time each one, choose how many of the next are only counted. If
        this step only checked for orders, count it instead, and put no span.
        ``work_start`` is the time at which our own work began, if that was later than the step's
        end.
        """
        counted, work_start = 0, work_start or start + duration
        lock = self._skip_lock
        is_reentry = lock._is_owned()  # type: ignore[attr-defined]  # threading.Condition relies on it
        try:
            # Without the lock, as on re-entry from a signal handler, only this step's span is put.
            # If ``untimed`` is not empty, another thread has chosen the next steps meanwhile.
            if not is_reentry and lock.acquire(False) and not self.untimed.left:
                if self.untimed.later:
                    self._continue_skip(ordinal)
                    self.spend(TIMING_FACTOR * (mono() - work_start))
                    return
                counted, self._counted = self._counted, 0
                if counted < 0:
                    counted, self._counted = 0, counted
                self._choose_skip(ordinal, duration, work_start)
        except Exception as error:
            if not contain(error):
                raise
        finally:
            if not is_reentry and lock._is_owned():  # type: ignore[attr-defined]
                lock.release()
        self.put(self.kind, start, duration, ordinal, key, 0, 0, 1, counted)
        own_ns = TIMING_FACTOR * (mono() - work_start)
        self.spend(self._sampling.cost(own_ns, counted))

    def spend(self, own_ns: int, extra: int = 0) -> None:
        """Add to the cost: our own work, and the ``extra`` ns by which traced steps took longer."""
        self.cost.spent += own_ns + extra
        self.words[_SELF] += own_ns
        if extra:
            self.words[_EXTRA] += extra

    def announce_name(self, key: int, name: str) -> None:
        """Publish ``name`` for steps with ``key``, which has no name in ``names`` yet."""
        self.spend(self.names.publish(key, name) or 0)

    def put_failed(self, ordinal: int, key: int) -> None:
        """Put a span without a time for a step that was only counted and failed."""
        self.put_counted(mono(), 0, ordinal, key, layout.FLAG_FAILED | layout.FLAG_SAMPLED)

    def put_last_failed(self, key: int) -> None:
        """Put a span for a step that was only counted and failed.

        Its ordinal is not known. The span gets the ordinal in the channel's counter.
        """
        self.put_failed(self.words[self.count_at], key)

    def put_counted(self, start: int, duration: int, ordinal: int, key: int, flags: int) -> None:
        """Put the span of a step that was only counted."""
        self._counted -= 1
        self.put(self.kind, start, duration, ordinal, key, flags)

    @guarded
    def open(self) -> None:
        """Open the channel before the first step."""
        if self.channel is None:
            self._begin()

    @guarded
    def level(self, ordinal: int, key: int, count: int = 1) -> int | None:
        """Return the policy's trace level for step ``ordinal``, None when the step is not traced.

        The step counts as ``count`` steps.
        """
        if self.channel is None and not self._begin():
            return None
        now, current_policy, pacer, channel = mono(), self._current_policy, self.pacer, self.channel
        if current_policy is None or pacer is None or channel is None:  # stopped meanwhile by another thread
            return None
        if self.words[POLICY] != self.generation or current_policy.is_bounded:
            self._check_orders(current_policy, pacer, ordinal, now)
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
        if pacer.lasting_faults:
            channel.report("page-faults", _LASTING_FAULTS % pacer.lasting_faults)
            pacer.lasting_faults = 0
        # Without a record ring, a trace would only cost time.
        return pacer.policy.level if is_selected and channel.ring_problem is None else None

    def count_missed(self, ordinal: int, count: int = 1) -> None:
        """Count a missed step if the policy selects one of ``count`` steps from ``ordinal`` on."""
        pacer, channel = self.pacer, self.channel
        if channel is not None and pacer is not None and any(map(pacer.selects, range(ordinal, ordinal + count))):
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

    @property
    def is_tracing(self) -> bool:
        """Whether the policy in force traces steps."""
        return self.pacer is not None and self.pacer.policy.mode != layout.MODE_OFF

    def _call_pacer(self, method: Callable[..., int | None], *args: object) -> int:
        """Call ``method`` of the pacer under its lock; 0 on re-entry, as from a signal handler."""
        lock = self._pacer_guard.take()
        if lock is None:
            return 0
        try:
            return method(*args) or 0
        finally:
            lock.release()

    def _choose_skip(self, ordinal: int, duration: int, now: int) -> None:
        """Choose how many steps are only counted after step ``ordinal``."""
        pacer = self.pacer
        (last, last_ns), self._last_skip = self._last_skip, (ordinal, now)
        if pacer is None:
            return
        number = self._sampling.skip(ordinal, duration, pacer.policy.budget)
        pacer.wait_min = self._sampling.margin_interval
        if self.words[_TIMES + self.kind] >= self._decision_at:
            self._decision_at = NEVER
            pacer.decide_at(ordinal + 1)
            self.trigger = min(self.trigger, pacer.trigger)
        number = min(number, self._steps_before_trace(ordinal) - MARGIN)
        if number > 0:
            period = max(1, (now - last_ns) // max(1, ordinal - last))
            self._order_check_interval = max(
                _ORDER_CHECK_NS // period, self._sampling.check_interval(pacer.policy.budget)
            )
            self._counted += number
            self.untimed.skip(number, self._order_check_interval)

    def _continue_skip(self, ordinal: int) -> None:
        """Count step ``ordinal``, which found no new order, and let more steps be only counted."""
        self.words[self.count_at] = max(self.words[self.count_at], ordinal)
        later = self.untimed.later
        number = max(0, min(later - 1, self._steps_before_trace(ordinal) - MARGIN))
        self._counted += number + 1 - later
        self.untimed.skip(number, self._order_check_interval)

    def _steps_before_trace(self, ordinal: int) -> int:
        """Return how many steps after ``ordinal`` begin before a step of this kind may be traced.

        Steps of some kinds are never traced themselves, but session runs within them are. Those
        traces do not depend on the number of the step.
        """
        return self.trigger - ordinal if self.cost.traceable else NEVER

    def _begin(self) -> bool:
        """Open the channel and start the pacer; False if there is no channel."""
        opened = self._ensure_channel()
        if not opened:
            if opened is None:
                self.stop()
            return False
        channel, self.put, self._current_policy = opened
        self.words = channel.words
        counter = ctypes.c_uint64.from_buffer(channel.words, 8 * self.count_at)
        address = ctypes.addressof(counter)
        self.untimed.bind(address, address + 8 * (POLICY - self.count_at), counter)
        self.cost = channel.costs.of_kind(self.kind)
        self._start_pacer(self._current_policy, channel.costs)
        self.channel = channel  # set last: after an exception, the next step opens the channel again
        return True

    def _check_orders(self, current_policy: CurrentPolicy, pacer: TracePacer, ordinal: int, now: int) -> None:
        """Check for a new order and for the end of the one in force; choose the next check."""
        if current_policy.is_bounded and current_policy.revision == self._revision and pacer.is_finished(ordinal - 1):
            current_policy.end_if_finished(self.kind, self._revision)
        current_policy.update(now, self.kind, ordinal)
        if self.channel is None:
            return
        if self.generation != current_policy.generation:
            self.generation = current_policy.generation
            dropped = self.untimed.follow(self.generation)
            self._counted -= dropped
        (last, last_ns), self._last_end_check = self._last_end_check, (ordinal, now)
        interval = (ordinal - last) * _END_CHECK_NS // max(now - last_ns, 1)
        self._end_check_at = ordinal + max(1, min(interval, _END_CHECK_STEPS))

    def _follow(self, current_policy: CurrentPolicy, pacer: TracePacer) -> None:
        """Pass the policy in force to the pacer."""
        self._revision = current_policy.revision
        self._decision_at = NEVER
        if not current_policy.is_bounded:
            self._end_check_at = NEVER
        self._call_pacer(pacer.follow, current_policy.policy, current_policy.max_traced or NEVER)

    def _start_pacer(self, current_policy: CurrentPolicy, costs: Costs) -> None:
        kind = self.kind
        self._revision = current_policy.revision
        self.pacer = TracePacer(
            current_policy.policy,
            lambda: costs.totals(kind, current_policy.policy.budget),
            self._first_traces,
            should_yield=lambda: costs.should_yield(kind, FIRST_TRACES),
        )
        self.known_keys = self.pacer.known_keys
        self.trigger = self.pacer.trigger


class _AllKeys(object):
    """A set that contains every key."""

    def __contains__(self, _key: object) -> bool:
        return True


def _discard(
    _kind: int,
    _start: int,
    _duration: int,
    _ordinal: int,
    _key: int = 0,
    _flags: int = 0,
    _parent: int = 0,
    _count: int = 1,
    _counted: int = 0,
) -> None:
    """Discard a span."""


_NO_WORDS: Any = [0] * (max(WORD.values()) + 1)
