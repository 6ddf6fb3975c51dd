"""The daemon of a shared store: listens for all users of the host."""

import contextlib
import grp
import math
import os
import selectors
import signal
import socket
import time
from collections import deque
from pathlib import Path
from types import FrameType
from typing import Final

from ...agent.daemon_start import COLLECTOR
from ...commands import daemons, settings_files
from ...commands.service_manager import ServiceManager
from ...commands.streams import WARNING, log
from ...formats.addresses import local_endpoint
from ...formats.private_files import write_json
from ...formats.runtime_dir import instance_dir
from ...formats.settings import SETTINGS
from ...formats.version import VERSION
from ..errors import UsageError
from ..store import shared
from .users import User, Users

#: Interval of attempts to connect to a collector that starts, and longest sleep (seconds).
_START_POLL_S: Final = 0.05
_SLEEP_MAX_S: Final = 3600.0
#: Maximum number of new connections in a turn: established ones are served between them.
_ACCEPTS_A_TURN: Final = 16
#: Pause after the system has refused a connection because no descriptor is left (seconds).
_PAUSE_S: Final = 1.0
#: Interval at which each user's collector is started to apply the limits of the store. Time between
#: the starts for two users (seconds).
_ROUND_S: Final = 86_400.0
_ROUND_STEP_S: Final = 120.0
#: Time limit for the collectors to store what has arrived, and to end (seconds).
_STOP_S: Final = 45.0
_STOP_POLL_S: Final = 0.05
#: Limit of open files: each connection takes two.
_DESCRIPTORS: Final = 65_536
_BACKLOG: Final = 512
_FOR_ALL: Final = 0o666


class ReadersError(UsageError):
    """The setting `readers` names no group."""

    slug = "readers"


def readers_group() -> int | None:
    """Return the group of the setting `readers`, None without one.

    ReadersError if there is no such group.
    """
    name = SETTINGS["readers"].read()
    try:
        return grp.getgrnam(name).gr_gid if name else None
    except KeyError:
        raise ReadersError(f"the setting readers: there is no group {name!r}") from None


class SharingService:
    """Accepts connections at the socket of the shared ``store``, until ``stop``.

    `manager`: the service manager.
    """

    def __init__(self, store: str) -> None:
        self._store = Path(store)
        self._description = f"serves {store} for all users"
        self.manager = ServiceManager(os.environ)
        self._selector = selectors.DefaultSelector()
        self._is_stopping = False
        self._round: deque[int] = deque()  # users whose collectors must still be started to apply the limits
        self._next_round_s = self._round_end_s = -math.inf
        self._paused_until_s = math.inf  # infinite while connections are accepted

    def start(self) -> None:
        """Open the store and listen; TfprofError or OSError on failure."""
        self._users = Users(self._store, readers_group(), self._selector)
        shared.share(self._store, self._users.readers)
        daemons.allow_descriptors(_DESCRIPTORS)
        place = local_endpoint(str(self._store)).place
        Path(place).unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._listener.bind(place)
        Path(place).chmod(_FOR_ALL)  # the kernel names the user of each connection
        self._listener.listen(_BACKLOG)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wakeup, wakeup = socket.socketpair()
        for end in (self._wakeup, wakeup):
            end.setblocking(False)
        self._selector.register(self._wakeup, selectors.EVENT_READ)
        signal.set_wakeup_fd(wakeup.detach(), warn_on_full_buffer=False)
        status = {"pid": os.getpid(), "version": VERSION, "store": str(self._store), "service": True}
        write_json(f"{instance_dir(str(self._store))}/{COLLECTOR}.json", status)
        log(f"tfprof: {self._description}, pid {os.getpid()}; SIGTERM or Ctrl-C ends it")
        self.manager.ready(self._description)

    def serve(self) -> None:
        """Serve until `stop`."""
        while not self._is_stopping:
            now = time.monotonic()
            for key, _ in self._selector.select(self._timeout_s(now)):
                self._handle(key)
            now = time.monotonic()
            self._accept_again(now)
            self._users.tick(now)
            self.manager.reload_if_due(self._description, self._use_settings)
            self._run_limits(now)
            self.manager.alive(now)

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """Make `serve` return; a handler of signals."""
        self._is_stopping = True

    def close(self) -> None:
        """Close all connections, and end the collectors when they have stored what has arrived."""
        self.manager.stopping()
        self._listener.close()
        self._users.close()
        self._end_collectors()

    def _timeout_s(self, now: float) -> float:
        if self._users.are_waiting:
            return _START_POLL_S
        times = (self.manager.next_alive_s, self._next_round_s, self._paused_until_s, self._users.next_check_s)
        return max(0.0, min(*times, now + _SLEEP_MAX_S) - now)

    def _handle(self, key: selectors.SelectorKey) -> None:
        if isinstance(key.data, User):
            key.data.pass_on()
        elif key.fileobj is self._listener:
            self._accept()
        else:
            with contextlib.suppress(BlockingIOError):
                self._wakeup.recv(4096)

    def _accept(self) -> None:
        now = time.monotonic()
        for _ in range(_ACCEPTS_A_TURN):
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # no descriptor or memory is left: those that wait stay in the kernel
                log(f"tfprof: cannot accept a connection: {error.strerror}", level=WARNING)
                self._selector.unregister(self._listener)
                self._paused_until_s = now + _PAUSE_S
                return
            self._users.add(connection, now)

    def _accept_again(self, now: float) -> None:
        if now >= self._paused_until_s:
            self._paused_until_s = math.inf
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _use_settings(self) -> None:
        readers = readers_group()
        shared.share(self._store, readers)
        self._users.readers = readers
        self._next_round_s = -math.inf
        for pid in self._collectors():
            _end(pid)  # the next one, which starts at once if it is needed, reads the settings

    def _run_limits(self, now: float) -> None:
        """Start the collector of the next user: limits of the store apply without a job, too."""
        if now < self._next_round_s:
            return
        if SETTINGS["keep-days"].read() is None and SETTINGS["keep-bytes"].read() is None:
            self._next_round_s = math.inf
            return
        if not self._round:
            self._round.extend(int(root.name) for root in shared.roots(self._store))
            self._round_end_s = now + _ROUND_S
        if self._round:
            self._users.run_collector(self._round.popleft())
        self._next_round_s = now + _ROUND_STEP_S if self._round else self._round_end_s

    def _collectors(self) -> list[int]:
        """Return the pids of the running collectors."""
        folders = [instance_dir(str(root)) for root in shared.roots(self._store)]
        return [pid for folder in folders if (pid := daemons.running_pid(folder, COLLECTOR))]

    def _end_collectors(self) -> None:
        deadline = time.monotonic() + _STOP_S
        for pid in self._collectors():
            _end(pid)
        while self._collectors() and time.monotonic() < deadline:
            time.sleep(_STOP_POLL_S)


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def serve(store: str) -> int:
    """Serve the shared ``store``, whose lock is held, until SIGTERM; return the exit status."""
    settings_files.load_into_environment()
    service = SharingService(store)
    signal.signal(signal.SIGHUP, service.manager.request_reload)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, service.stop)
    service.start()
    try:
        service.serve()
    finally:
        service.close()
    return 0
