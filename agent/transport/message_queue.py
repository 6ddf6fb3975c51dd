"""Queues of outgoing messages: those of one job, and those of one type.

Records and spans are read from the rings when they can be sent, and released when they are acked.
Their bodies are not kept: unacked data stays in the ring and is read again.
"""

import json
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ...formats import layout, wire
from ...formats.wire import Head
from ..channels import ChannelReader
from ..rings import InvalidChannelError, RingSlice
from .resending import Resending

SLICE_BYTES: Final = 4 << 20
#: Maximum bytes in flight, per job.
WINDOW_BYTES: Final = 8 << 20
#: Records are sent at once when there are FLUSH_BYTES of them or they fill URGENT_SHARE of the
#: ring, spans when there are FLUSH_SPANS of them. Otherwise they are sent FLUSH_S (seconds) after
#: the last ones: a message with two steps costs the collector hardly more than a message with one.
#: Spans are sent SPANS_FLUSH_S after the last ones, since the page and `tfprof top` show them: at
#: each poll of an idle agent.
FLUSH_BYTES: Final = 1 << 20
FLUSH_SPANS: Final = 1024
FLUSH_S: Final = 2.0
SPANS_FLUSH_S: Final = 0.4
#: Acks are urgent when unacked data fills this share of a ring.
URGENT_SHARE: Final = 0.25

Send = Callable[[Head, bytes], bool]


def encode(value: Mapping[str, Any]) -> bytes:
    """Return ``value`` as JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


class MessageQueue:
    """Messages of one type, kept until acked; beyond ``length_max`` the oldest are dropped."""

    def __init__(self, message_type: int, uid: int, length_max: int) -> None:
        self.message_type = message_type
        self.uid = uid
        self.dropped = 0
        self._length_max = length_max
        self._messages: deque[tuple[Head, bytes]] = deque()
        self._sent_count = 0
        self._last_number = 0

    def put(self, value: Mapping[str, Any], number: int | None = None) -> None:
        """Queue ``value`` with ``number``, by default that of the message before plus 1.

        The first number is random, so that it differs from those of an earlier agent.
        """
        last_number = self._last_number or wire.COUNTED_FROM + secrets.randbits(62)
        self._last_number = last_number + 1 if number is None else number
        first = 0 if self.message_type == wire.OPEN else self._last_number
        self._messages.append((Head(self.message_type, self.uid, 0, first, self._last_number), encode(value)))
        if len(self._messages) > self._length_max:
            self._messages.popleft()
            self._sent_count = max(0, self._sent_count - 1)
            self.dropped += 1

    def send_due(self, send: Send, unanswered_max: int | None = None) -> bool:
        """Send unsent messages; return whether all were sent.

        At most ``unanswered_max`` messages, if it is given, are unanswered at a time.
        """
        while self._sent_count < len(self._messages) and (unanswered_max is None or self._sent_count < unanswered_max):
            if not send(*self._messages[self._sent_count]):
                return False
            self._sent_count += 1
        return not self.is_due

    def note_acked(self, last: int) -> None:
        """Forget the messages up to number ``last``, which are acked."""
        while self._messages and self._messages[0][0].last <= last:
            self._messages.popleft()
            self._sent_count = max(0, self._sent_count - 1)

    def rewind(self) -> None:
        """Mark all unacked messages as unsent."""
        self._sent_count = 0

    def rewrite(self, change: Callable[[bytes], bytes]) -> None:
        """Replace every body by ``change(body)``, and mark all messages as unsent."""
        self._messages = deque((head, change(body)) for head, body in self._messages)
        self.rewind()

    @property
    def is_due(self) -> bool:
        """Whether a message is unsent."""
        return self._sent_count < len(self._messages)

    @property
    def unanswered(self) -> int:
        """The number of sent, unanswered messages."""
        return self._sent_count

    def __len__(self) -> int:
        return len(self._messages)


class StickyMessage(MessageQueue):
    """A message that is sent again after every reconnect, even if it was acked before."""

    def __init__(self, message_type: int, uid: int) -> None:
        super().__init__(message_type, uid, 1)
        self._acked = -1

    def note_acked(self, last: int) -> None:
        """Stop waiting for an answer."""
        self._acked = last

    @property
    def unanswered(self) -> int:
        """1 if the newest message was sent and is unanswered, else 0."""
        return super().unanswered if self._acked < self._last_number else 0


class _SentSlice(NamedTuple):
    last: int
    end: int
    size: int


class Cursor:
    """The sent and acked positions of a ring."""

    def __init__(self, message_type: int, acked: int) -> None:
        self.message_type = message_type
        self.acked = self.sent = acked
        self.in_flight = 0
        self.last_sent_s = 0.0
        self._slices: deque[_SentSlice] = deque()

    @property
    def unanswered(self) -> int:
        """The number of sent, unanswered slices."""
        return len(self._slices)

    def note_sent(self, ring_slice: RingSlice, now: float) -> None:
        """Record that ``ring_slice`` was sent."""
        self._slices.append(_SentSlice(ring_slice.last, ring_slice.end, len(ring_slice.data)))
        self.sent = ring_slice.end
        self.in_flight += len(ring_slice.data)
        self.last_sent_s = now

    def note_acked(self, last: int) -> None:
        """Record that everything up to number ``last`` is stored."""
        while self._slices and self._slices[0].last <= last:
            sent_slice = self._slices.popleft()
            self.acked = sent_slice.end
            self.in_flight -= sent_slice.size

    def rewind(self) -> None:
        """Go back to the first unacked record or span entry, to send from there at once."""
        self._slices.clear()
        self.sent = self.acked
        self.in_flight = 0
        self.last_sent_s = 0.0


def both_clocks() -> tuple[int, int]:
    """Return the current monotonic and real time, ns."""
    return time.monotonic_ns(), time.time_ns()


class Outbox:
    """All messages of one job to the collector."""

    def __init__(self, channel: ChannelReader) -> None:
        self._channel = channel
        uid = self.uid = channel.identity.uid
        self.records = Cursor(wire.RECORDS, channel.records.tail)
        self.spans = Cursor(wire.SPANS, channel.spans.tail)
        self.opens = StickyMessage(wire.OPEN, uid)
        self.counters = MessageQueue(wire.COUNTERS, uid, 1)
        self.events = MessageQueue(wire.EVENT, uid, 100)
        self.closes = MessageQueue(wire.CLOSE, uid, 1)
        self._queues = {queue.message_type: queue for queue in (self.opens, self.counters, self.events, self.closes)}
        self.acked_records = 0
        self.is_spooled = False  # data is on the disk of this host that the collector may not have
        self.refused = 0
        self.stall: dict[str, str] | None = None
        self.progress = 0
        self.is_closed = False
        self._spooled_records = 0
        self._is_ended = False
        self._is_broken = False
        self.resending = Resending()

    # -- sending ---------------------------------------------------------------------------------
    def send_due(self, now: float, send: Send, room: int, share: int = 0) -> int:
        """Send due messages; return the bytes of records sent.

        Records are limited to about ``room`` bytes, but up to ``share`` bytes of the job may always
        be in flight. InvalidChannelError if the channel is broken.
        """
        if not self.resending.may_send(now) or (self.opens.is_due and not self.opens.send_due(send)):
            return 0
        self.resending.note_resending(now)
        sent_bytes = 0
        if not self._is_broken:
            records_due = self._records_due(now)
            if records_due or self._spans_due(now):
                self._send_spans(now, send)
            if records_due:
                sent_bytes = self._send_records(now, send, min(room, WINDOW_BYTES - self.records.in_flight), share)
        for queue in self._queues.values():
            if queue.is_due:
                queue.send_due(send)
        if self.resending.check_is_due(now) and self.resending.is_silent(now, is_waiting=self.unanswered > 0):
            self.rewind()
        return sent_bytes

    @property
    def unanswered(self) -> int:
        """The number of sent, unanswered messages of the job."""
        queued = sum(message_queue.unanswered for message_queue in self._queues.values())
        return self.records.unanswered + self.spans.unanswered + queued

    @property
    def must_flush(self) -> bool:
        """Whether so many records wait that they must be sent at once."""
        if self._is_broken:
            return False
        sent = self.records.sent
        return (
            self._channel.records.unread(sent) >= FLUSH_BYTES
            or self._channel.records.filled_share(sent) >= URGENT_SHARE
        )

    @property
    def wants_answers(self) -> bool:
        """Whether an answer is urgent: it would release much of the ring, or close the job."""
        return self._is_ended or (
            not self._is_broken and self._channel.records.filled_share(self.records.acked) >= URGENT_SHARE
        )

    @property
    def is_filling(self) -> bool:
        """Whether unacked data fills much of a ring, or the job has ended."""
        spans_max = URGENT_SHARE * layout.SPAN_COUNT
        return self.wants_answers or (
            not self._is_broken and self._channel.spans.unread(self.spans.acked, ended=False) >= spans_max
        )

    def send_now(self) -> None:
        """Send waiting records and spans at once, even if they are few."""
        self.records.last_sent_s = self.spans.last_sent_s = 0.0

    @property
    def is_transferring(self) -> bool:
        """Whether records await an ack, or must be sent at once."""
        return not self._is_broken and (self.records.in_flight > 0 or self.must_flush)

    def _records_due(self, now: float) -> bool:
        unread = self._channel.records.unread(self.records.sent)
        return unread > 0 and (self._is_ended or now >= self.records.last_sent_s + FLUSH_S or self.must_flush)

    def _spans_due(self, now: float) -> bool:
        if self.spans.unanswered:  # one message at a time: other jobs wait while the collector stores spans
            return False
        unread = self._channel.spans.unread(self.spans.sent, ended=self._is_ended)
        return unread > 0 and (self._is_ended or unread >= FLUSH_SPANS or now >= self.spans.last_sent_s + SPANS_FLUSH_S)

    def _send_records(self, now: float, send: Send, room: int, share: int) -> int:
        sent_bytes = 0
        while (limit := max(room - sent_bytes, share - self.records.in_flight)) > 0:
            strictly = sent_bytes >= room
            ring_slice = self._channel.records.read(self.records.sent, min(SLICE_BYTES, limit), strictly=strictly)
            if ring_slice is None:
                break
            if not send(Head(wire.RECORDS, self.uid, 0, ring_slice.first, ring_slice.last), ring_slice.data):
                break
            self.records.note_sent(ring_slice, now)
            sent_bytes += len(ring_slice.data)
        return sent_bytes

    def _send_spans(self, now: float, send: Send) -> None:
        ring_slice = self._channel.spans.read(self.spans.sent, FLUSH_SPANS, ended=self._is_ended)
        if ring_slice is None:
            return
        monotonic_ns, real_ns = both_clocks()
        clocks = monotonic_ns.to_bytes(8, "little") + real_ns.to_bytes(8, "little")
        if send(Head(wire.SPANS, self.uid, 0, ring_slice.first, ring_slice.last), clocks + ring_slice.data):
            self.spans.note_sent(ring_slice, now)

    # -- answers ---------------------------------------------------------------------------------
    def note_acked(self, about: int, last: int) -> None:
        """Handle an ACK: release the bytes of the ring, forget the messages."""
        if about == wire.RECORDS:
            self.acked_records = max(self.acked_records, last)
        self._release(about, last)

    def note_spooled(self, about: int, last: int) -> None:
        """Handle messages that are safe in the spool, which delivers them: as after an ACK."""
        self.is_spooled = True
        if about == wire.RECORDS:
            self._spooled_records = max(self._spooled_records, last)
        self._release(about, last)

    @property
    def saved_records(self) -> int:
        """The number of the last record that is stored or in the spool."""
        return max(self.acked_records, self._spooled_records)

    def note_delivered(self) -> None:
        """Record that everything in the spool is stored."""
        self.is_spooled = False
        self.acked_records = self.saved_records

    def _release(self, about: int, last: int) -> None:
        self.stall = None
        self.progress += 1
        self.resending.note_answered()
        if about == wire.RECORDS:
            self.records.note_acked(last)
            self._channel.records.release(self.records.acked)
        elif about == wire.SPANS:
            self.spans.note_acked(last)
            self._channel.spans.release(self.spans.acked)
        elif about in self._queues:
            self._queues[about].note_acked(last)
            self.is_closed = self.is_closed or about == wire.CLOSE

    def note_refused(self, about: int, last: int) -> None:
        """Handle a REFUSE: count the message as lost."""
        self.refused += 1
        self.note_acked(about, last)

    def note_stalled(self, stall: dict[str, str], now: float) -> None:
        """Handle a STALL: send all unacked messages again after STALL_S."""
        self.stall = stall
        self.resending.note_stalled(now)
        self.rewind()

    def note_reopened(self, now: float) -> None:
        """Handle a REOPEN: send all unacked messages again, at most once within REOPEN_S."""
        self.resending.note_reopened(now)
        self.rewind()

    def rewind(self) -> None:
        """Send all unacked messages again, the OPEN first."""
        self.records.rewind()
        self.spans.rewind()
        for queue in self._queues.values():
            queue.rewind()
        self.resending.restart()

    # -- the job's end ---------------------------------------------------------------------------
    def end(self) -> None:
        """Send without delay from now on, since the job has ended."""
        self._is_ended = True

    def give_up(self, error: InvalidChannelError) -> None:
        """Stop reading the rings; their content is lost."""
        self._is_broken = True
        self.events.put({"slug": error.slug, "text": error.args[0], "count": 1, "t_ns": time.time_ns()})

    @property
    def is_drained(self) -> bool:
        """Whether all data in the rings is acked, or can never be read."""
        if self._is_broken:
            return True
        unread = self._channel.records.unread(self.records.acked)
        return not unread and not self._channel.spans.unread(self.spans.acked, ended=self._is_ended)
