"""Messages to the service manager that started a daemon, such as systemd (sd_notify(3))."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING

from ..formats.errors import TfprofError
from ..formats.values import whole_number
from . import settings_files
from .streams import WARNING, log

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping
    from types import FrameType

_SOCKET = "NOTIFY_SOCKET"
_WATCHDOG_US = "WATCHDOG_USEC"
_WATCHDOG_PID = "WATCHDOG_PID"
#: Variables of a service manager, which a service needs and its children must not have.
VARIABLES = frozenset([_SOCKET, _WATCHDOG_US, _WATCHDOG_PID])


class ServiceManager:
    """The service manager that the variables in ``environ`` name; without them it gets no message.

    The variables are removed, so that no child process speaks for this one. `next_alive_s`: when
    `alive` sends its next message (monotonic clock).
    """

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        values = {name: environ.pop(name, "") for name in VARIABLES}
        self._address = values[_SOCKET]
        is_watched = values[_WATCHDOG_PID] in ("", str(os.getpid()))
        interval_us = whole_number(values[_WATCHDOG_US]) if is_watched else None
        # systemd.service(5): send a sign of life at half of the watchdog's time limit
        self._interval_s = interval_us / 2e6 if interval_us else float("inf")
        self.next_alive_s = time.monotonic() + self._interval_s
        self._is_reload_due = False

    def ready(self, status: str) -> None:
        """Tell that this service has started, or has reloaded its settings."""
        self._send("READY=1", "STATUS=" + status)

    def request_reload(self, _number: int, _frame: FrameType | None) -> None:
        """Make the next `reload_if_due` read the settings; a handler of signals."""
        self._is_reload_due = True

    def reload_if_due(self, status: str, use_settings: Callable[[], object]) -> None:
        """Call `reload` if `request_reload` was called since the last time."""
        if self._is_reload_due:
            self._is_reload_due = False
            self.reload(status, use_settings)

    def reload(self, status: str, use_settings: Callable[[], object]) -> None:
        """Read the settings again and call ``use_settings``, and tell when that begins and ends.

        If that raises TfprofError, log and status say that all stay as they were.
        """
        self._send("RELOADING=1", "MONOTONIC_USEC=%d" % (time.monotonic_ns() // 1000))
        try:
            settings_files.load_into_environment()
            use_settings()
        except TfprofError as error:
            refusal = "the settings stay as they were: %s" % error
            log("tfprof: " + refusal, level=WARNING)
            self.ready("%s; %s" % (status, refusal.replace("\n", " ")))
        else:
            log("tfprof: the settings are reloaded")
            self.ready(status)

    def stopping(self) -> None:
        """Tell that this service ends."""
        self._send("STOPPING=1")

    def alive(self, now: float) -> None:
        """Send the watchdog, if there is one, a sign of life when the next one is due.

        ``now``: the monotonic clock in seconds.
        """
        if now >= self.next_alive_s:
            self.next_alive_s = now + self._interval_s
            self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        """Send one message; it is dropped if the service manager is gone or does not read."""
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)
            try:
                sender.sendto("\n".join(lines).encode(), address)
            except (OSError, ValueError):  # ValueError: a zero byte in the address
                return
