"""Keeps messages on disk while a collector of others is away, and delivers them after."""

import hashlib
import math
import os
from collections.abc import Iterable
from enum import Enum, auto
from typing import Any, Final

from ...commands import key_files
from ...formats import runtime_dir, wire
from ...formats.addresses import TCP, Endpoint
from ...formats.errors import TfprofError
from ...formats.wire import Head
from ..transport.message_queue import Send
from .delivery import Delivery, Report
from .spool import RETRY_S, Spool, SpoolError, folders

#: Time without a collector that stores data after which messages go to the disk (seconds). The
#: shorter one applies while a job has ended, or its ring fills.
AWAY_S: Final = 5.0
URGENT_AWAY_S: Final = 1.0
#: Answers of a collector about data.
_ANSWERS: Final = (wire.ACK, wire.STALL, wire.REFUSE, wire.REOPEN)


class Route(Enum):
    """Where the messages of jobs go now."""

    DIRECT = auto()  # to the collector
    SPOOL = auto()
    HOLD = auto()  # nowhere: the little that is in the spool is delivered first


def _refuse(_head: Head, _body: bytes) -> bool:
    return False


#: Changes of the route after which what was sent on the earlier one may be unknown on the new one.
_NEW_STARTS: Final = (
    (Route.DIRECT, Route.SPOOL),
    (Route.SPOOL, Route.DIRECT),
    (Route.HOLD, Route.DIRECT),
)


class Spooling:
    """The spool of a node for the collector at ``endpoint``, and the choice of the route.

    ``key`` and ``bytes_max`` are the settings `collector-key` and `spool-bytes`. ``report`` is
    called for data that is given up. The spool is opened when it is first needed, or if an earlier
    agent has left one. The user's own collector needs none: ``is_enabled`` is False.
    """

    def __init__(self, endpoint: Endpoint, key: str, bytes_max: int, report: Report, now: float) -> None:
        self.is_enabled = not endpoint.is_own
        self._endpoint = endpoint
        self._key = key
        self._bytes_max = bytes_max
        self._report = report
        self._available_s = now
        self._head_stall: dict[str, str] | None = None
        self._next_open_s = -math.inf
        self._failure: dict[str, str] | None = None
        self._spool: Spool | None = None
        self._delivery: Delivery | None = None
        self.route = Route.DIRECT
        self._open(now, only_existing=True)

    # -- the route -------------------------------------------------------------------------------
    def choose(self, now: float, *, is_available: bool, has_jobs: bool, is_urgent: bool) -> bool:
        """Choose the route; return whether everything that is not acked is to be sent again on it.

        ``is_available``: whether a collector answers. ``has_jobs``: whether there may be data to
        keep. ``is_urgent``: whether a job has ended, or its ring fills.
        """
        if is_available and self._head_stall is None:
            self._available_s = now
        is_away = now >= self._available_s + (URGENT_AWAY_S if is_urgent else AWAY_S)
        is_needed = is_away and has_jobs
        if self._spool is None and now >= self._next_open_s and (is_needed or self._failure is not None):
            self._open(now, only_existing=not is_needed)
        change = self.route, self._chosen(is_away, is_urgent)
        self.route = change[1]
        if self._spool is not None and change == (Route.DIRECT, Route.SPOOL):
            self._spool.forget_jobs()
        return change in _NEW_STARTS

    def _chosen(self, is_away: bool, is_urgent: bool) -> Route:
        segments = 0 if self._spool is None else len(self._spool)
        if self._spool is not None and self._bytes_max and (is_away or segments > 1 or (segments and is_urgent)):
            return Route.SPOOL
        return Route.HOLD if segments else Route.DIRECT

    @property
    def failure(self) -> dict[str, str] | None:
        """The reason why messages cannot be kept on the disk now, None if none is known."""
        if self._spool is None:
            return self._failure
        return self._spool.failure if self.route is Route.SPOOL else None

    def stall(self, direct: dict[str, str] | None) -> dict[str, str] | None:
        """Return why no data is stored; ``direct``: why the collector is not reached, if known."""
        if direct is None and not self.is_empty:
            direct = self._head_stall
        on_disk = self.failure
        if direct is None or on_disk is None or on_disk["text"] == direct["text"]:
            return direct
        text = f"{direct['text']}, and nothing more is kept on disk: {on_disk['text']}"
        return {"slug": on_disk["slug"], "text": text}

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits on the disk, as far as this agent knows."""
        return self._spool is None or not len(self._spool)

    @property
    def is_writing(self) -> bool:
        """Whether messages go to the disk, and the disk takes them."""
        return self.route is Route.SPOOL and self.failure is None

    @property
    def is_blocked(self) -> bool:
        """Whether no message is taken now, so that none need be read."""
        return self.route is Route.HOLD or (
            self.route is Route.SPOOL and self._spool is not None and self._spool.is_waiting
        )

    def send(self, direct: Send) -> Send:
        """Return what sends messages of jobs on the current route; ``direct``: to the collector."""
        if self.route is Route.SPOOL and self._spool is not None:
            return self._spool.put
        return direct if self.route is Route.DIRECT else _refuse

    # -- the disk --------------------------------------------------------------------------------
    def durable(self, now: float, *, at_once: bool) -> Iterable[Head]:
        """Return the heads of the messages that have become durable, each once."""
        if self._spool is None or not (at_once or self._spool.sync_is_due(now)):
            return ()
        return self._spool.sync()

    def deliver(self, now: float, send: Send) -> None:
        """Send to the collector what lies in the spool."""
        if self._delivery is not None and not self.is_empty:
            self._delivery.send_due(now, send)

    def handle(self, answer: Head, reason: dict[str, str], now: float) -> bool:
        """Take an answer about data that was in the spool; return whether it is one.

        ``reason`` is that of a STALL or REFUSE.
        """
        if answer.type not in _ANSWERS:
            return False
        self._head_stall = reason if answer.type == wire.STALL else None
        if self._delivery is None or self.is_empty:
            return False
        self._delivery.note_answer(answer, reason, now)
        return True

    def restart(self, now: float) -> None:
        """Deliver from the start of the segment: the collector is a new one.

        A spool that could not be opened before, without a key, is older than what is sent now.
        """
        self._head_stall = None
        if self._delivery is not None:
            self._delivery.restart()
        elif self._failure is not None:
            self._open(now, only_existing=True)

    def divert(self, now: float) -> bool:
        """Send all further messages to the spool; return whether there is one."""
        if self._spool is None:
            self._open(now)
        if self._spool is not None:
            self.route = Route.SPOOL
        return self._spool is not None

    def _open(self, now: float, *, only_existing: bool = False) -> None:
        """Open the spool, if it may be used; `_failure` has the reason why it cannot be opened."""
        if not self.is_enabled or not (self._bytes_max or only_existing):
            return
        self._failure = None
        try:
            root = os.path.join(runtime_dir.require_absolute(runtime_dir.state_home()), "tfprof-spool")
            name = self._name()
            if only_existing and not any(map(os.path.lexists, folders(root, name))):
                return
            self._spool = Spool(root, name, self._bytes_max)
        except TfprofError as error:
            slug = error.slug if isinstance(error, key_files.KeyFileError) else SpoolError.slug
            self._failure = {"slug": slug, "text": error.args[0]}
            self._next_open_s = now + RETRY_S
            return
        self._delivery = Delivery(self._spool, self._report)

    def _name(self) -> str:
        """Return the name of the spool: jobs of another node or collector are not in it."""
        is_key = self._endpoint.scheme == TCP and self._key != key_files.NO_KEY
        node = key_files.node_key(key_files.node_key_path(self._key)).node if is_key else key_files.NO_KEY
        return f"{hashlib.sha256(self._endpoint.url.encode()).hexdigest()[:12]}-{node}"

    def close(self) -> None:
        """Close the files; what lies in the spool stays for the next agent."""
        if self._delivery is not None:
            self._delivery.close()
        if self._spool is not None:
            self._spool.close()

    def status(self) -> dict[str, Any]:
        """Return the state of the spool for the status file."""
        size, oldest_ns = (0, None) if self._spool is None else (self._spool.size, self._spool.oldest_ns)
        return {"spool_bytes": size, "spool_oldest_ns": oldest_ns, "spool_failure": self.failure}
