"""The users of a shared store: their connections, and the collector of each."""

import contextlib
import errno
import math
import os
import pwd
import selectors
import signal
import socket
import struct
import time
from collections import OrderedDict, deque
from pathlib import Path
from typing import Final

from ...agent.daemon_start import COLLECTOR, DaemonSupervisor
from ...commands.daemons import DaemonError
from ...commands.streams import WARNING, log
from ...formats.addresses import local_endpoint
from ...formats.runtime_dir import make_instance
from ..errors import TfprofError
from ..store import shared
from .relay import Relay
from .watch import CHECK_S, CHECKS, Watch

#: Maximum number of connections of a user; further ones are closed at once.
CONNECTIONS_MAX: Final = 64
#: Maximum number of users with connections, each of whom has a collector. Maximum number of such
#: users without an account.
USERS_MAX: Final = 64
STRANGERS_MAX: Final = 8
#: Users without an account get a new folder only if the store has fewer folders than this.
STRANGERS_FOLDERS_MAX: Final = 1_024
#: Time that a connection waits for the start of the collector (seconds).
START_S: Final = 60.0
#: Maximum number of events of a user in a turn. Each may wake a process that then has the processor
#: before the relay, so the messages of others would wait long for a user with many.
EVENTS_A_TURN: Final = 4
#: Minimum interval of log lines about one user (seconds).
LOG_S: Final = 60.0
#: Maximum number of users without a connection that are remembered.
_IDLE_MAX: Final = 1_024
#: The kernel's struct ucred: pid, uid, gid.
CREDENTIALS: Final = struct.Struct("iII")
#: The user that the kernel names if the peer's user is unknown in the service's user namespace.
_UNMAPPED: Final = 65_534


class UserLimitError(TfprofError):
    """A connection of a user who has too many, or who cannot be served."""

    slug = "user-limit"


class User:
    """One user: the folder with the jobs, the collector, and the connections.

    ``waiting``: connections for which no collector has come up yet, each with its time limit.
    """

    def __init__(self, uid: int, store: Path, readers: int | None) -> None:
        """Make the folder of user ``uid``; StoreError or FolderError on failure."""
        root = str(shared.make_root(store, uid, readers))
        instance_dir = make_instance(root)
        self.uid = uid
        self.is_stranger = not _has_account(uid)
        self.supervisor = DaemonSupervisor(instance_dir, root, COLLECTOR)
        self.address = local_endpoint(instance_dir).place
        self._watch = Watch(instance_dir)
        self.waiting: deque[tuple[socket.socket, float]] = deque()
        self.relays: set[Relay] = set()
        self.selector = selectors.DefaultSelector()
        self._events: deque[tuple[selectors.SelectorKey, int]] = deque()

    @property
    def connections(self) -> int:
        """The number of connections."""
        return len(self.waiting) + len(self.relays)

    def pass_on(self) -> None:
        """Move some of what can be moved now; each connection has its turn."""
        if not self._events and self.relays:
            self._events.extend(self.selector.select(0))
        for _ in range(min(EVENTS_A_TURN, len(self._events))):
            key, events = self._events.popleft()
            key.data.handle(key.fileobj, events)

    def connect(self, now: float) -> TfprofError | None:
        """Connect what waits; start the collector if it does not run.

        If the start fails, close what waits, and return the error.
        """
        try:
            while self.waiting and (far := _connected(self.address)) is not None:
                self._add_relay(self.waiting.popleft()[0], far)
            if self.waiting:
                self.supervisor.ensure_running()
        except (TfprofError, OSError) as error:
            self.drop_waiting()
            return error if isinstance(error, TfprofError) else DaemonError(f"{self.address}: {error.strerror}")
        failure = self.supervisor.failure if self.waiting else None
        if failure is not None or (self.waiting and now > self.waiting[0][1]):
            self.drop_waiting()
            reason = failure or {"text": f"it has not come up within {START_S:.0f} s", "slug": "collector"}
            return DaemonError(f"no collector: {reason['text']}", reason["slug"])
        return None

    def _add_relay(self, near: socket.socket, far: socket.socket) -> None:
        relay = Relay(self.selector, near, far, lambda: self.relays.discard(relay))
        self.relays.add(relay)

    def end_hanging(self) -> TfprofError | None:
        """Kill the collector if it hangs, and return that; another one starts when it is needed."""
        pid = self._watch.hanging_pid()
        if not pid:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return DaemonError(
            f"the collector of process {pid} hung for {CHECK_S * CHECKS:.0f} s, and was killed", "collector"
        )

    def drop_waiting(self) -> None:
        """Close the connections that wait."""
        while self.waiting:
            self.waiting.popleft()[0].close()

    def close(self) -> None:
        """Close all connections."""
        self.drop_waiting()
        for relay in list(self.relays):
            relay.close()
        self.selector.close()


class Users:
    """The users that have sent to the shared store at ``store``.

    ``readers``: the group that may read the jobs of all.
    """

    def __init__(self, store: Path, readers: int | None, selector: selectors.BaseSelector) -> None:
        self.readers = readers
        self._store = store
        self._selector = selector
        self._users: OrderedDict[int, User] = OrderedDict()
        self._logged_s: dict[int, float] = {}
        self._next_check_s = -math.inf

    @property
    def are_waiting(self) -> bool:
        """Whether a connection waits for the start of a collector."""
        return any(user.waiting for user in self._users.values())

    @property
    def next_check_s(self) -> float:
        """When the collectors are checked next (monotonic clock)."""
        return self._next_check_s if any(user.connections for user in self._users.values()) else math.inf

    def add(self, connection: socket.socket, now: float) -> None:
        """Take a new connection of the user that the kernel names.

        Close it if that user has too many, or cannot be served.
        """
        uid = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[1]
        try:
            user = self._user(uid)
        except (TfprofError, OSError) as error:
            self._report(uid, str(error), now)
            connection.close()
            return
        connection.setblocking(False)
        user.waiting.append((connection, now + START_S))
        self._connect(user, now)

    def tick(self, now: float) -> None:
        """Connect what waits, and end collectors that hang."""
        if now >= self.next_check_s:
            self._next_check_s = now + CHECK_S
            for user in [user for user in self._users.values() if user.connections]:
                error = user.end_hanging()
                if error is not None:
                    self._report(user.uid, str(error), now)
        for user in [user for user in self._users.values() if user.waiting]:
            self._connect(user, now)

    def close(self) -> None:
        """Close all connections."""
        for user in self._users.values():
            user.close()

    def run_collector(self, uid: int) -> None:
        """Start the collector of user ``uid`` unless it runs.

        It removes expired jobs, and ends when idle.
        """
        try:
            self._remembered(uid).supervisor.ensure_running()
        except (TfprofError, OSError) as error:
            self._report(uid, str(error), time.monotonic())

    def _connect(self, user: User, now: float) -> None:
        error = user.connect(now)
        if error is not None:
            self._report(user.uid, str(error), now)

    def _user(self, uid: int) -> User:
        """Return the user ``uid``, for one more connection; TfprofError if there are too many."""
        if uid == _UNMAPPED:
            raise UserLimitError("the kernel does not tell which user this is")
        user = self._users.get(uid) or self._admitted(uid)
        if user.connections >= CONNECTIONS_MAX:
            raise UserLimitError(f"more than {CONNECTIONS_MAX} connections")
        active = [other for other in self._users.values() if other.connections]
        if not user.connections and len(active) >= USERS_MAX:
            raise UserLimitError(f"more than {USERS_MAX} users at a time")
        if user.is_stranger and not user.connections and sum(other.is_stranger for other in active) >= STRANGERS_MAX:
            raise UserLimitError(f"more than {STRANGERS_MAX} users without an account at a time")
        return user

    def _admitted(self, uid: int) -> User:
        """Return a user that has no connection; TfprofError if the store takes no new one."""
        users = self._store / shared.USERS
        is_new = not (users / str(uid)).is_dir() and not _has_account(uid)
        if is_new and sum(1 for _ in users.iterdir()) >= STRANGERS_FOLDERS_MAX:
            raise UserLimitError("too many users without an account")
        return self._remembered(uid)

    def _remembered(self, uid: int) -> User:
        user = self._users.get(uid)
        if user is None:
            user = self._users[uid] = User(uid, self._store, self.readers)
            self._selector.register(user.selector, selectors.EVENT_READ, user)
        idle = [other for other in self._users.values() if not other.connections and other is not user]
        for other in idle[: max(0, len(idle) - _IDLE_MAX)]:
            del self._users[other.uid]
            self._selector.unregister(other.selector)
            other.close()
        return user

    def _report(self, uid: int, text: str, now: float) -> None:
        """Log why a connection of user ``uid`` is closed, at most once in LOG_S."""
        if now >= self._logged_s.get(uid, -LOG_S) + LOG_S:
            if len(self._logged_s) > _IDLE_MAX:
                self._logged_s.clear()
            self._logged_s[uid] = now
            log(f"tfprof: user {shared.Owner(uid, self._store).name}: {text}", level=WARNING)


def _connected(address: str) -> socket.socket | None:
    """Return a connection to the collector at ``address``, None if it accepts none now."""
    far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        far.connect(address)
    except OSError as error:
        far.close()
        if error.errno in (errno.ENOENT, errno.ECONNREFUSED, errno.EAGAIN):
            return None
        raise
    return far


def _has_account(uid: int) -> bool:
    with contextlib.suppress(KeyError):
        pwd.getpwuid(uid)
        return True
    return False
