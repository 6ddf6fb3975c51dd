"""Decides which signals the launcher forwards: those that were not sent to the whole group."""

import os
import signal
from collections.abc import Callable
from typing import Final, NamedTuple

from .signal_receiver import Signal

#: Equal signals that arrive within this time are merged, as the kernel merges pending signals
#: (seconds).
SETTLE_S: Final = 0.01
#: Maximum time between the arrival of a group's signal at the launcher and its arrival at the
#: witness (seconds). A service manager signals one process of the group after another.
GRACE_S: Final = 0.03
_STOP_SIGNALS: Final = frozenset([signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU])
#: By signal: the pending signals that the kernel discards when this signal arrives.
_DISCARDS: Final[dict[int, frozenset[signal.Signals]]] = {
    signal.SIGCONT: _STOP_SIGNALS,
    **dict.fromkeys(_STOP_SIGNALS, frozenset([signal.SIGCONT])),
}
#: Signals that the kernel sends to this process because of its own use of resources.
_RESOURCE_LIMIT_SIGNALS: Final = frozenset([signal.SIGXCPU, signal.SIGXFSZ])
_ENDING_SIGNALS: Final = frozenset([signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
_NEVER: Final = float("inf")


def asks_for_end(number: int) -> bool:
    """Return whether a signal asks a command to end; under `nohup`, SIGHUP does not."""
    return number in _ENDING_SIGNALS and signal.getsignal(number) is not signal.SIG_IGN


class _WaitingSignal(NamedTuple):
    """A received signal; it is next checked at ``check_at``, and decided on at ``decide_at``."""

    info: Signal
    received_at: float
    check_at: float
    is_from_job: bool

    @property
    def decide_at(self) -> float:
        return self.received_at + GRACE_S


class Forwarding:
    """Recent signals; each is matched with a signal that the witness saw, or forwarded.

    ``take_group_signals`` returns the signals that the witness saw since the last call, or None.
    ``is_of_job`` returns whether a pid belongs to the job: signals from the job to its parent are
    not forwarded.
    """

    def __init__(self, take_group_signals: Callable[[], list[int] | None], is_of_job: Callable[[int], bool]) -> None:
        self._take_group_signals = take_group_signals
        self._is_of_job = is_of_job
        self._waiting_signals: list[_WaitingSignal] = []
        self._witnessed_signals: list[tuple[int, float]] = []
        #: The first signal that asked for the end, by anybody but the job; 0 if there was none.
        self.end_request = 0

    def add(self, info: Signal, now: float) -> None:
        """Record a signal that this process received."""
        number = info.number
        is_sent = info.code <= 0
        if (is_sent and info.pid == os.getpid()) or (not is_sent and number in _RESOURCE_LIMIT_SIGNALS):
            return
        discarded_numbers = _DISCARDS.get(number, frozenset())
        self._waiting_signals = [
            waiting for waiting in self._waiting_signals if waiting.info.number not in discarded_numbers
        ]
        self._witnessed_signals = [
            witnessed for witnessed in self._witnessed_signals if witnessed[0] not in discarded_numbers
        ]
        if number < signal.SIGRTMIN and any(
            waiting.info.number == number and now - waiting.received_at < SETTLE_S for waiting in self._waiting_signals
        ):
            return
        is_from_job = is_sent and self._is_of_job(info.pid)
        if asks_for_end(number) and not is_from_job:
            self.end_request = self.end_request or number
        self._waiting_signals.append(_WaitingSignal(info, now, now + SETTLE_S, is_from_job))

    @property
    def due_at(self) -> float:
        """The time at which `take_ready` must be called next; infinite when no signal waits."""
        return min((waiting.check_at for waiting in self._waiting_signals), default=_NEVER)

    def may_forward(self, number: int) -> bool:
        """Whether a signal ``number`` may still be forwarded."""
        return any(waiting.info.number == number for waiting in self._waiting_signals)

    def take_ready(self, now: float) -> list[Signal]:
        """Return the signals to forward to the job now."""
        if now < self.due_at:
            return []
        group_signals = self._take_group_signals()
        if group_signals is None:
            # Without a witness, signals of users are forwarded. Those of the terminal and of the
            # kernel are taken to have reached the whole group.
            decided_signals = [waiting for waiting in self._waiting_signals if waiting.info.code <= 0]
            self._waiting_signals = []
        else:
            self._match(group_signals, now)
            decided_signals = [waiting for waiting in self._waiting_signals if waiting.decide_at <= now]
            self._waiting_signals = [
                waiting._replace(check_at=waiting.decide_at)
                for waiting in self._waiting_signals
                if waiting.decide_at > now
            ]
        return [waiting.info for waiting in decided_signals if not waiting.is_from_job]

    def _match(self, group_signals: list[int], now: float) -> None:
        """Match waiting signals with those that the witness saw, the oldest first."""
        self._witnessed_signals += [(number, now) for number in group_signals]
        unmatched_signals = []
        for waiting in self._waiting_signals:
            match = next(
                (witnessed for witnessed in self._witnessed_signals if witnessed[0] == waiting.info.number), None
            )
            if match is None:
                unmatched_signals.append(waiting)
            else:
                self._witnessed_signals.remove(match)
        self._waiting_signals = unmatched_signals
        self._witnessed_signals = [witnessed for witnessed in self._witnessed_signals if now - witnessed[1] <= GRACE_S]
