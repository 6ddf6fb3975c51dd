"""Passes the collector's messages on to what they are about."""

from collections.abc import Callable, Mapping
from typing import Any

from ...formats import wire
from ...formats.wire import Head
from ..spool.spooling import Route, Spooling
from ..transport.connection import CollectorConnection
from .given_up_jobs import GivenUpJobs
from .jobs import Jobs
from .samples import Sampler
from .sender import Sender

#: Takes an order or a request at a time (monotonic, seconds).
Command = Callable[[Head, dict[str, Any], float], None]


class Answers:
    """The messages of the collector.

    ``commands`` has, by wire type, what takes orders and requests. ``given_up_jobs`` is None if
    they are not sent to the collector.
    """

    def __init__(
        self,
        connection: CollectorConnection,
        spooling: Spooling,
        sender: Sender,
        jobs: Jobs,
        sampler: Sampler,
        commands: Mapping[int, Command],
        given_up_jobs: GivenUpJobs | None,
    ) -> None:
        self._connection = connection
        self._spooling = spooling
        self._sender = sender
        self._jobs = jobs
        self._sampler = sampler
        self._commands = commands
        self._given_up_jobs = given_up_jobs

    def handle(self, now: float) -> bool:
        """Handle all messages that have arrived; return whether one of them was urgent."""
        is_urgent = False
        for head, body in self._connection.answers(now):
            is_urgent = self._is_urgent(head, body, now) or is_urgent
        return is_urgent

    def _is_urgent(self, head: Head, body: dict[str, Any], now: float) -> bool:
        """Handle one message; return whether it was urgent."""
        if head.type == wire.WELCOME:
            self._spooling.restart(now)
            if self._spooling.route is Route.DIRECT:
                self._sender.send_all_again()
            return True
        if head.type in self._commands:
            self._commands[head.type](head, body, now)
            return True
        if head.about == wire.GIVEN_UP:
            if self._given_up_jobs is not None:
                self._given_up_jobs.note_answer(head)
            return False
        reason = {"slug": str(body.get("slug")), "text": str(body.get("text"))}
        if self._spooling.handle(head, reason, now):
            return True
        if head.type != wire.REOPEN and head.about == wire.SAMPLES:
            self._sampler.note_answer(head, now)
            return False
        return self._jobs.note_answer(head, reason, now)
