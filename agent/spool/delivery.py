"""Delivers a spool to the collector in order; a segment is removed once all of it is acked."""

import math
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...formats import wire
from ...formats.errors import TfprofError, VersionError
from ...formats.ids import hex_id
from ...formats.wire import Head
from ..transport.message_queue import WINDOW_BYTES, Send
from ..transport.resending import Resending
from . import segment
from .segment import DamagedError, SegmentReader
from .spool import Spool

#: Maximum number of unanswered messages.
UNANSWERED_MAX: Final = 256
#: Number of REOPENs for which a segment is sent again; then the message is given up.
REOPENS_MAX: Final = 20
#: Types whose ACK covers all earlier messages of the job.
_SEQUENCES: Final = (wire.RECORDS, wire.SPANS)

#: Gets the slug and the text of data that is given up.
Report = Callable[[str, str], None]


@dataclass(slots=True)
class _Sent:
    """A sent message, from ``at`` to ``end`` of its segment."""

    head: Head
    at: int
    end: int
    is_answered: bool = False

    def is_covered_by(self, answer: Head) -> bool:
        """Return whether ``answer`` answers this message."""
        if (answer.uid, answer.about) != (self.head.uid, self.head.type):
            return False
        is_earlier = self.head.type in _SEQUENCES and self.head.last <= answer.last
        return is_earlier or self.head.last == answer.last


class Delivery:
    """Sends the messages of ``spool``.

    A segment is sent after the one before was answered as a whole and removed. So at most one
    segment is sent twice: the collector drops what it has stored already, as after a lost ACK.
    A segment with messages of an unknown version stays.
    ``report`` is called for data that is given up.
    """

    def __init__(self, spool: Spool, report: Report) -> None:
        self._spool = spool
        self._report = report
        self._reader: SegmentReader | None = None
        self._path = ""
        self._at = 0
        self._torn_at = math.inf  # from here on the segment cannot be read
        self._is_left = False  # whether the segment stays, for an agent of the release that wrote it
        self._sent: deque[_Sent] = deque()
        self._refused_uids: set[int] = set()  # the collector has refused their OPEN
        self._resending = Resending()
        self._reopens = 0
        for path, error in spool.rejected:
            self._report_left(path, error)

    def close(self) -> None:
        """Close the segment; it stays."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def send_due(self, now: float, send: Send) -> None:
        """Send what may be sent now, and go on to the next segment after the last answer."""
        while self._resending.may_send(now) and (self._reader is not None or self._begin()):
            if self._resending.is_silent(now, is_waiting=bool(self._sent)):
                self._rewind(self._sent[0].at)
            if not self._send_messages(now, send) or self._sent:
                return
            self.close()
            if self._is_left:
                self._spool.skip_first()
            else:
                self._spool.remove_first()

    def _report_left(self, path: str, error: TfprofError) -> None:
        self._report(error.slug, f"{path} is left alone: {error.args[0]}")

    def _begin(self) -> bool:
        """Open the first segment; return whether there is one."""
        path = self._spool.first_path()
        if path is None:
            return False
        try:
            self._reader = SegmentReader(path)
        except TfprofError as error:  # it was replaced since the spool was opened
            self._report_left(path, error)
            self._spool.skip_first()
            return False
        self._path, self._torn_at, self._reopens = path, math.inf, 0
        self._is_left = False
        self._rewind(segment.HEADER.size)
        return True

    def _rewind(self, at: int) -> None:
        """Send again from ``at`` on."""
        self._sent.clear()
        self._at = at
        self._resending.restart()

    def _send_messages(self, now: float, send: Send) -> bool:
        """Send messages as far as the limits allow; return whether none is left to send."""
        while not self._sent or (len(self._sent) < UNANSWERED_MAX and self._at - self._sent[0].at < WINDOW_BYTES):
            message = self._next()
            if message is None:
                return True
            if message.head.type == wire.CLOSE and self._awaits(message.head.uid):
                return False
            if message.head.uid not in self._refused_uids:
                if not send(message.head, message.body):
                    return False
                self._resending.note_sending(now)
                self._sent.append(_Sent(message.head, message.at, message.end))
            self._at = message.end
        return False

    def _awaits(self, uid: int) -> bool:
        """Return whether data of job ``uid`` is unanswered; none is taken after its CLOSE."""
        return any(sent.head.uid == uid and not sent.is_answered for sent in self._sent)

    def _next(self) -> segment.Message | None:
        """Return the next message, None at the end; report an end that cannot be read."""
        if self._reader is None or self._at >= self._torn_at:
            return None
        try:
            return self._reader.read(self._at)
        except VersionError as error:
            self._torn_at, self._is_left = self._at, True
            self._report_left(self._path, error)
            return None
        except (OSError, TfprofError) as error:
            self._torn_at = self._at
            self._report(DamagedError.slug, f"{os.path.basename(self._path)} of the spool: {error.args[0]}")
            return None

    # -- answers ---------------------------------------------------------------------------------
    def restart(self) -> None:
        """Send the segment again: the collector is a new one, or was away."""
        self._resending = Resending()
        if self._reader is not None:
            self._rewind(segment.HEADER.size)

    def note_answer(self, answer: Head, reason: dict[str, str], now: float) -> None:
        """Handle an answer about data; ``reason`` is that of a STALL or REFUSE."""
        if answer.type == wire.STALL:
            self._resending.note_stalled(now)
            if self._sent:
                self._rewind(self._sent[0].at)
        elif answer.type == wire.REOPEN:
            self._note_reopen(answer.uid, now)
            self._forget_answered()
        else:
            self._note_answered(answer, reason)

    def _note_reopen(self, uid: int, now: float) -> None:
        """Send the segment again, which opens its jobs; after many times give the message up."""
        if self._reopens < REOPENS_MAX:
            if self._resending.note_reopened(now):
                self._reopens += 1
                self._rewind(segment.HEADER.size)
            return
        unanswered = [sent for sent in self._sent if not sent.is_answered]
        for sent in [one for one in unanswered if one.head.uid in (uid, 0)][:1]:
            sent.is_answered = True
            self._report("spool-refused", f"a message of job {hex_id(uid)}: the collector does not know the job")

    def _note_answered(self, answer: Head, reason: dict[str, str]) -> None:
        for sent in self._sent:
            if not sent.is_answered and sent.is_covered_by(answer):
                sent.is_answered = True
                self._resending.note_answered()
                if answer.type == wire.REFUSE:
                    self._note_refused(sent.head, reason)
        self._forget_answered()

    def _forget_answered(self) -> None:
        while self._sent and self._sent[0].is_answered:
            self._sent.popleft()

    def _note_refused(self, head: Head, reason: dict[str, str]) -> None:
        self._report(reason["slug"], f"messages of job {hex_id(head.uid)} in the spool: {reason['text']}")
        if head.type == wire.OPEN:
            self._refused_uids.add(head.uid)
