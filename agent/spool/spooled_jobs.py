"""What the segments of a spool say of jobs, so that each can be delivered without the others."""

import json
from typing import Final

from ...formats import wire
from ...formats.wire import Head
from ..transport.message_queue import encode

#: Minimum interval of COUNTERS of a job in the spool (seconds): only the last ones count.
COUNTERS_S: Final = 30.0

Message = tuple[Head, bytes]


class SpooledJobs:
    """The open jobs; a job's last OPEN is repeated before its first message in each segment."""

    def __init__(self) -> None:
        self._opens: dict[int, Message] = {}  # uid -> its last OPEN
        self._opened_uids: set[int] = set()  # in the segment that is written
        self._counters_s: dict[int, float] = {}

    def begin_segment(self) -> None:
        """Forget what the segment before says."""
        self._opened_uids.clear()

    def forget(self) -> None:
        """Forget which jobs are open: all that still run are opened again."""
        self._opens.clear()
        self._counters_s.clear()

    def takes(self, head: Head, now: float) -> bool:
        """Return whether a message is to be kept now; COUNTERS are, now and then."""
        return head.type != wire.COUNTERS or now >= self._counters_s.get(head.uid, 0.0)

    def messages(self, head: Head, body: bytes) -> list[Message]:
        """Return the OPENs that the segment lacks, and the message, with known jobs only."""
        body, uids = self._of_known_jobs(body) if head.type == wire.SAMPLES else (body, {head.uid})
        missing_uids = set() if head.type == wire.OPEN else uids - self._opened_uids
        return [*(self._opens[uid] for uid in sorted(missing_uids) if uid in self._opens), (head, body)]

    def _of_known_jobs(self, body: bytes) -> tuple[bytes, set[int]]:
        """Return a body of SAMPLES with the jobs that are open or have ended in this segment."""
        sample = json.loads(body)
        known_uids = self._opens.keys() | self._opened_uids
        rows = {uid: row for uid, row in sample["jobs"].items() if int(uid, 16) in known_uids}
        return encode({**sample, "jobs": rows}), {int(uid, 16) for uid in rows}

    def note_written(self, messages: list[Message], now: float) -> None:
        """Record that ``messages``, the result of `messages`, are in the segment."""
        head, body = messages[-1]
        self._opened_uids |= {written.uid for written, _ in messages}
        if head.type == wire.OPEN:
            self._opens[head.uid] = head, body
        elif head.type == wire.COUNTERS:
            self._counters_s[head.uid] = now + COUNTERS_S
        elif head.type == wire.CLOSE:  # a later OPEN would make the job run again
            self._opens.pop(head.uid, None)
            self._counters_s.pop(head.uid, None)
