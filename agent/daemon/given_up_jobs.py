"""Sends to a collector on another host the files about jobs whose data was given up.

A local collector finds these files itself.
"""

import contextlib
import json
import math
import os
from typing import Final

from ...formats import given_up, wire
from ...formats.wire import Head
from ..transport.message_queue import Send
from . import lost_processes

#: Interval of looking for files, and time until an unanswered message is sent again (seconds).
INTERVAL_S: Final = 2.0
AGAIN_S: Final = 10.0
#: Maximum number of unanswered messages.
UNANSWERED_MAX: Final = 16


class GivenUpJobs:
    """The files of an instance that wait for their collector; each stays until it is answered."""

    def __init__(self, instance_dir: str) -> None:
        self._instance_dir = instance_dir
        self._sent: dict[int, tuple[str, float]] = {}  # uid -> file, and the time of sending it
        self._next_s = -math.inf

    @property
    def is_empty(self) -> bool:
        """Whether no file waits, of earlier agents either."""
        return not lost_processes.has_waiting_jobs(self._instance_dir)

    def send_due(self, now: float, send: Send) -> None:
        """Send files that were not sent yet, or not answered; OSError on failure."""
        if now < self._next_s:
            return
        self._next_s = now + INTERVAL_S
        self._sent = {uid: sent for uid, sent in self._sent.items() if now < sent[1] + AGAIN_S}
        for path, job in given_up.pending(self._instance_dir):
            if len(self._sent) >= UNANSWERED_MAX:
                return
            if job is None:
                os.unlink(path)
            elif job["uid"] not in self._sent:
                if not send(Head(wire.GIVEN_UP, job["uid"], 0, 1, 1), json.dumps(job).encode()):
                    return
                self._sent[job["uid"]] = path, now

    def note_answer(self, head: Head) -> None:
        """Remove the file of a job that is stored, or that the collector will never store."""
        if head.type in (wire.ACK, wire.REFUSE) and head.uid in self._sent:
            with contextlib.suppress(OSError):
                os.unlink(self._sent.pop(head.uid)[0])
