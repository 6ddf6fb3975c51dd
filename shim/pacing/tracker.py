"""One kind of step in this process: ordinals, timing, pace, and access to the channel."""

from __future__ import annotations

import _thread
import itertools

from ...formats import layout
from ...formats.policy import NEVER, Policy, PolicyError
from ..channel.ring import WORD, ReentrantGuard
from ..clock import mono
from ..guard import guarded, stop
from ..tensorflow.names import Names
from .accounts import Account
from .pace import FIRST, TracePacer
from .sampling import MARGIN, Sampling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Container, Iterator

    from ..channel.ring import Channel
    from ..channel.spans import Put
    from ..core import Made
    from .accounts import Accounts

POLICY = WORD["policy"]
_SEEN = WORD["policy_seen"]
_ASKED = [WORD["policy_" + name] for name in ("mode", "level", "first", "last", "every", "budget")]
_LASTING_FAULTS = "steps take %d page faults more each since some were traced, and tracing further ones did not undo it"
_MISSED = WORD["missed"]
_missed_guard = ReentrantGuard()  # at the count of steps of any kind that were missed
_TRACED, _EXTRA, _SELF = WORD["traced"], WORD["extra_ns"], WORD["self_ns"]


class _Counted(object):
    """The fields used by steps that are only counted.

    They come first in a tracker's memory, so that one cache line holds them all.
    """

    __slots__ = ("count_at", "left", "words")

    count_at: int
    left: Iterator[int]
    words: memoryview[int]


class Tracker(_Counted):
    """Steps of ``kind``, as the wrappers around the job's calls see them.

    A step that begins may take its ordinal from ``left``. It is then only counted, by
    ``words[count_at] = ordinal``, and reported again only if it fails (``failed``). When ``left``
    is empty, ``next()`` gives the ordinal. Such a step is plain when ``ordinal < trigger and
    words[POLICY] == generation and key in known``; it is measured without further calls and its
    time goes to ``timed``. For any other step ``level`` decides. ``put`` writes the span: (kind,
    start, duration, ordinal, key, flags, parent, count). Before the first step and in a forked
    child there is no channel: ``trigger`` is 0, ``left`` is empty and ``level`` opens the channel.
    """

    __slots__ = (
        "_counter",
        "_first",
        "_make",
        "_others",
        "_pacer_guard",
        "_sampling",
        "_skip_lock",
        "account",
        "channel",
        "generation",
        "kind",
        "known",
        "names",
        "next",
        "pace",
        "put",
        "trigger",
    )

    def __init__(self, kind: int, make: Callable[[], Made | None], first: int = FIRST) -> None:
        self.kind = kind
        self._make = make  # returns (channel, put, policy), None where there is no channel
        self._first = first
        self.count_at = layout.COUNTS_AT // 8 + kind
        self.forget()

    def forget(self) -> None:
        """Start again, as in a forked child: without a channel, at step 1."""
        self._pacer_guard = (
            ReentrantGuard()
        )  # at the pace; a forked child's own, for another thread may have the parent's
        self.channel: Channel | None = None
        self.account = Account()
        self.put: Put = _discard
        self._skip_lock = _thread.allocate_lock()
        self._sampling = Sampling()
        self._others = 0  # steps that were only counted, or may be now, and are in no entry yet
        self.left = _NOTHING
        self.words = _NO_WORDS
        self.generation = 0
        self.known: Container[int] = frozenset()
        self.names = Names()
        self.pace: TracePacer | None = None
        self.trigger = 0
        self._counter = itertools.count(1)
        self.next = self._counter.__next__

    def stop(self) -> None:
        """Stop tracing and counting."""
        self.forget()
        self.known = _AllKeys()
        self.trigger = NEVER
        self.left = itertools.repeat(0)

    def timed(self, start: int, duration: int, ordinal: int, key: int, left: Iterator[int]) -> None:
        """Put the span of a plain step that found ``left`` empty, and of those counted before it.

        Then choose how many next steps are only counted, if they are too short to time each.
        """
        others = 0
        try:
            # Without the lock, as on re-entry from a signal handler, only this step's span is put.
            # If ``left`` differs by now, another thread has done this.
            if self._skip_lock.acquire(False):
                try:
                    if self.left is left:
                        others, self._others = self._others, 0
                        if others < 0:
                            others, self._others = 0, others
                        self._choose_skip(ordinal, duration)
                finally:
                    self._skip_lock.release()
        except Exception as error:
            if not stop(error):
                raise
        self.put(self.kind, start, duration, ordinal, key, 0, 0, 1, others)
        own = 2 * (mono() - start - duration)  # as much again before the step
        self.spend(self._sampling.cost(own, others))

    def spend(self, own: int, extra: int = 0) -> None:
        """Book ``own`` ns of our own work and ``extra`` ns that traced steps took longer."""
        self.account.spent += own + extra
        self.words[_SELF] += own
        if extra:
            self.words[_EXTRA] += extra

    def announce_name(self, key: int, name: str) -> None:
        """Publish ``name`` for steps with ``key``, which is not among the known ``names``."""
        self.spend(self.names.publish(key, name) or 0)

    def failed(self, ordinal: int, key: int) -> None:
        """Put a span without a time for a step that was only counted and failed."""
        self._others -= 1
        self.put(self.kind, mono(), 0, ordinal, key, layout.FLAG_FAILED | layout.FLAG_SAMPLED)

    @guarded
    def level(self, ordinal: int, key: int) -> int | None:
        """Return the policy's trace level for step ``ordinal``, None when it is not traced."""
        if self.channel is None and not self._begin():
            return None
        if self.words[POLICY] != self.generation:
            self._apply_policy()
        pace, channel = self.pace, self.channel
        if pace is None or channel is None:  # stopped meanwhile by another thread
            return None
        wanted = self._paced(pace.should_trace, ordinal, key)
        self.trigger = pace.trigger
        if pace.lasting:
            channel.refuse("page-faults", _LASTING_FAULTS % pace.lasting)
            pace.lasting = 0
        # Where there will never be room for it, a trace would only cost.
        return pace.policy.level if wanted and channel.broken is None else None

    def missed(self, ordinal: int) -> None:
        """Count step ``ordinal`` as missed if the policy selects it by its number."""
        pace = self.pace
        lock = _missed_guard.take() if pace is not None and pace.names(ordinal) else None
        if lock is not None:
            try:
                self.words[_MISSED] += 1
            finally:
                lock.release()

    @guarded
    def untraced(self, key: int, duration: int) -> None:
        """Record a step for which ``level`` returned None."""
        if self.pace is not None:
            self.account.traceable = True
            self.spend(0, self._paced(self.pace.untraced, key, duration))

    @guarded
    def traced(self, key: int, duration: int, own: int, asked: bool = False) -> None:
        """Record a traced step and our own work for it, ns.

        ``asked``: the job itself requested the trace.
        """
        if self.pace is None:
            return
        self.words[_TRACED] += 1
        self.account.traceable = True
        self.account.traced += 1
        self.spend(own, 0 if asked else self._paced(self.pace.traced, key, duration, own))

    @property
    def tracing(self) -> bool:
        """Whether traced steps are recorded."""
        return self.pace is not None and self.pace.policy.mode != layout.MODE_OFF

    def _paced(self, ask: Callable[..., int], *given: int) -> int:
        """Call the pacer under its lock; 0 on re-entry, as from a signal handler."""
        lock = self._pacer_guard.take()
        if lock is None:
            return 0
        try:
            return ask(*given)
        finally:
            lock.release()

    def _choose_skip(self, ordinal: int, duration: int) -> None:
        pace = self.pace
        if pace is None:
            return
        number = self._sampling.skip(ordinal, duration, pace.policy.budget)
        number = min(number, self.trigger - ordinal - MARGIN)
        if number > 0:
            self._others += number
            self.left = itertools.islice(self._counter, number)

    def _begin(self) -> bool:
        made = self._make()
        if made is None:
            self.stop()
            return False
        channel, self.put, policy = made
        self.words = channel.words
        self.account = channel.accounts.of(self.kind)
        self._start_pacer(policy, channel.accounts)
        self.channel = channel  # last: what an exception interrupts is begun anew
        return True

    def _apply_policy(self) -> None:
        """Apply the agent's policy; an invalid one is refused and the current one stays."""
        words = self.words
        generation = words[POLICY]
        try:
            policy = Policy.from_words(tuple(words[at] for at in _ASKED))
        except PolicyError as error:
            if self.channel is not None:
                self.channel.refuse(error.slug, error.args[0])
            self.generation = generation
            return
        if self.channel is not None:
            self._start_pacer(policy, self.channel.accounts)
        self.generation = words[_SEEN] = generation

    def _start_pacer(self, policy: Policy, accounts: Accounts) -> None:
        kind = self.kind
        self.pace = TracePacer(
            policy,
            lambda: accounts.totals(kind, policy.budget),
            self._first,
            should_yield=lambda: accounts.should_yield(kind, FIRST),
        )
        self.known = self.pace.known
        self.trigger = self.pace.trigger


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
    _others: int = 0,
) -> None:
    """Discard a span."""


_NO_WORDS: Any = [0] * (max(WORD.values()) + 1)
_NOTHING: Iterator[int] = iter(())
