"""Which of the signals that reached the launcher have still to reach the job: those that were not sent to the whole group."""

import os
import signal
from collections.abc import Callable
from typing import Final, NamedTuple

from .inbox import Signal

#: Signals of one number that come so close together are one, as for a process that takes so long to wake (seconds).
SETTLE_S: Final = 0.002
#: So long may somebody take who signals the processes of a service one after the other (seconds).
GRACE_S: Final = 0.03
_STOPS: Final = frozenset([signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU])
#: What makes the system forget what: to go on, that it was to stop, and the other way round.
_UNDOES: Final[dict[int, frozenset[signal.Signals]]] = {
    signal.SIGCONT: _STOPS,
    **dict.fromkeys(_STOPS, frozenset([signal.SIGCONT])),
}
#: The kernel's words on what this process itself did.
_OWN_FAULTS: Final = frozenset([signal.SIGXCPU, signal.SIGXFSZ])
_NEVER: Final = float("inf")


class _Waiting(NamedTuple):
    """A signal that reached this process; whether it is for the job is known at ``until``, looked for at ``look``."""

    info: Signal
    since: float
    look: float
    from_job: bool

    @property
    def until(self) -> float:
        return self.since + GRACE_S


class Forwarding:
    """The signals of the last moments, of which each is taken off by one that the witness heard, or else passed on.

    ``witness`` returns what else reached the group since it was called last, or None; ``is_of_job`` tells whether a pid belongs to
    the job: what that sends to its parent is not for itself.
    """

    def __init__(self, witness: Callable[[], list[int] | None], is_of_job: Callable[[int], bool]) -> None:
        self._witness = witness
        self._is_of_job = is_of_job
        self._waiting: list[_Waiting] = []
        self._witnessed: list[tuple[int, float]] = []

    def add(self, info: Signal, now: float) -> None:
        """Take a signal that this process was sent."""
        number = info.number
        sent = info.code <= 0
        if (sent and info.pid == os.getpid()) or (not sent and number in _OWN_FAULTS):
            return
        undone = _UNDOES.get(number, frozenset())
        self._waiting = [one for one in self._waiting if one.info.number not in undone]
        self._witnessed = [one for one in self._witnessed if one[0] not in undone]
        if number < signal.SIGRTMIN and any(
            one.info.number == number and now - one.since < SETTLE_S for one in self._waiting
        ):
            return
        self._waiting.append(_Waiting(info, now, now + SETTLE_S, sent and self._is_of_job(info.pid)))

    @property
    def due(self) -> float:
        """When `ready` has something to do; infinite when nothing waits."""
        return min((one.look for one in self._waiting), default=_NEVER)

    def awaits(self, number: int) -> bool:
        """Whether a signal ``number`` may still have to be passed on."""
        return any(one.info.number == number for one in self._waiting)

    def ready(self, now: float) -> list[Signal]:
        """Return what is to be passed on to the job now."""
        if now < self.due:
            return []
        group_signals = self._witness()
        if group_signals is None:
            # Nobody to ask: the terminal and the kernel mean the group, people one process.
            over = [one for one in self._waiting if one.info.code <= 0]
            self._waiting = []
        else:
            self._match(group_signals, now)
            over = [one for one in self._waiting if one.until <= now]
            self._waiting = [one._replace(look=one.until) for one in self._waiting if one.until > now]
        return [one.info for one in over if not one.from_job]

    def _match(self, group_signals: list[int], now: float) -> None:
        """Match what waits with what the witness heard, the oldest first."""
        self._witnessed += [(number, now) for number in group_signals]
        left = []
        for one in self._waiting:
            match = next((each for each in self._witnessed if each[0] == one.info.number), None)
            if match is None:
                left.append(one)
            else:
                self._witnessed.remove(match)
        self._waiting = left
        self._witnessed = [each for each in self._witnessed if now - each[1] <= GRACE_S]
