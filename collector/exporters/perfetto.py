"""The format `perfetto`: a trace as Perfetto's protobuf (TrackEvent).

A job is a process; a device is a track with a track for each of its lanes.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Final

from ...formats.pb_wire import BYTES, VARINT
from ..export.wire import bytes_field, double_field, fixed_field, number_field, tag, text_field, varint
from ..traces.model import Curve, Label, Mark, Process, Slices, Step, Track
from .request import Request
from .timelines import trace_of, written

# Numbers of fields and values, as in protos/perfetto/trace/ in Perfetto's source.
_PACKET: Final = tag(1, BYTES)
_CLOCKS, _TIMESTAMP, _EVENT, _INTERNED, _FLAGS, _DESCRIPTOR, _FIRST_PACKET = 6, 8, 11, 12, 13, 60, 87
_STATE_CLEARED, _STATE_NEEDED = 1, 2
_BOOT_CLOCK, _REAL_CLOCK = 6, 1
_UUID, _NAME, _PROCESS, _PARENT, _COUNTER, _ORDER, _RANK, _MERGING = 1, 2, 3, 5, 8, 11, 12, 15
_EXPLICIT_ORDER, _NEVER_MERGED = 3, 2
_CATEGORY, _ANNOTATION, _TYPE, _EVENT_NAME, _TRACK, _DOUBLE_VALUE, _FLOW, _FLOW_END = 3, 4, 9, 10, 11, 44, 47, 48
_BEGIN, _END, _INSTANT, _VALUE = 1, 2, 3, 4
_CATEGORIES, _NAMES, _ANNOTATION_NAMES, _TEXTS = 1, 2, 3, 29
_ANNOTATION_NAME, _INTEGER, _TEXT = 1, 4, 17
#: Numbers of units of counters.
_UNITS: Final = {"ns": 1, "count": 2, "bytes": 3}

_HEAD: Final = number_field(10, 1)  # all packets are of one sequence
_EVENT_HEAD: Final = _HEAD + number_field(_FLAGS, _STATE_NEEDED) + tag(_TIMESTAMP, VARINT)
_EVENT_TAG: Final = tag(_EVENT, BYTES)


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the file; errors are those of `trace_of`."""
    trace = trace_of(request)
    writer = _Writer(trace.origin_ns)
    yield writer.start()
    yield from written(
        trace,
        {
            Process: writer.process,
            Track: writer.track,
            Slices: writer.slices,
            Curve: writer.curve,
            Mark: writer.mark,
        },
    )
    yield writer.ends()


class _Writer:
    """Makes packets. Times in packets count from ``origin_ns``, a real time."""

    def __init__(self, origin_ns: int) -> None:
        self._origin_ns = origin_ns
        self._uuids = count(1)
        self._processes: dict[int, int] = {}
        self._groups: dict[tuple[int, str], int] = {}
        self._tracks: dict[int, int] = {}
        self._track_ends: dict[int, bytes] = {}  # the event that ends a slice
        self._interned: dict[tuple[int, str], int] = {}
        self._pending: list[bytes] = []  # packets that define interned texts
        self._labels: dict[int, list[bytes]] = {}  # process -> part of the event of each label
        self._steps: dict[int, list[bytes]] = {}
        self._open: dict[int, list[int]] = {}  # track -> ends of the open slices, outermost first

    def start(self) -> bytes:
        """Return the first packets, which relate the time axis to real time."""
        first = number_field(_FLAGS, _STATE_CLEARED | _STATE_NEEDED) + number_field(_FIRST_PACKET, 1)
        clocks = b"".join(
            bytes_field(1, number_field(1, clock) + number_field(2, time_ns))
            for clock, time_ns in ((_BOOT_CLOCK, 0), (_REAL_CLOCK, self._origin_ns))
        )
        return _packet(first) + _packet(bytes_field(_CLOCKS, clocks))

    def process(self, process: Process) -> Iterator[bytes]:
        """Yield the track of a process."""
        uuid = self._processes[process.number] = next(self._uuids)
        descriptor = number_field(1, process.own_pid) + text_field(6, process.title)
        yield _descriptor(number_field(_UUID, uuid) + bytes_field(_PROCESS, descriptor))

    def track(self, track: Track) -> Iterator[bytes]:
        """Yield a track, and before the first one of a group the track of the group."""
        key = track.process, track.group
        if key not in self._groups:
            uuid = self._groups[key] = next(self._uuids)
            yield self._child(self._processes[track.process], uuid, track.group, number_field(_ORDER, _EXPLICIT_ORDER))
        uuid = self._tracks[track.number] = next(self._uuids)
        self._track_ends[track.number] = self._event(_END, track.number)
        order = number_field(_RANK, track.lane) + number_field(_MERGING, _NEVER_MERGED)
        yield self._child(self._groups[key], uuid, track.title, order)

    def slices(self, slices: Slices) -> Iterator[bytes]:
        """Yield the beginnings of slices, and the ends of earlier ones on the same tracks."""
        labels = self._labels.setdefault(slices.process, [])
        labels += map(self._label, slices.labels[len(labels) :])
        steps = self._steps.setdefault(slices.process, [])
        steps += map(self._step, slices.steps[len(steps) :])
        bytes_name = number_field(_ANNOTATION_NAME, self._number(_ANNOTATION_NAMES, "bytes"))
        packets, self._pending = self._pending, []
        begins = {number: self._event(_BEGIN, number) for number in self._tracks}
        flows = {row: _flow_fields(leaving, entering) for row, leaving, entering in slices.flows()}
        for row, (track, depth, label, step, start_ns, duration_ns, size) in enumerate(slices.rows()):
            ends = self._open.setdefault(track, [])
            while len(ends) > depth:
                packets.append(self._end(track, ends.pop()))
            ends.append(start_ns + duration_ns)
            event = begins[track] + labels[label] + steps[step] + flows.get(row, b"")
            if size:
                event += bytes_field(_ANNOTATION, bytes_name + number_field(_INTEGER, size))
            packets.append(self._timed(start_ns, event))
        yield b"".join(packets)

    def ends(self) -> bytes:
        """Return the ends of all open slices."""
        return b"".join(self._end(track, end) for track, ends in self._open.items() for end in reversed(ends))

    def curve(self, curve: Curve) -> Iterator[bytes]:
        """Yield a counter track with its values."""
        uuid = next(self._uuids)
        unit = number_field(3, _UNITS[curve.unit]) if curve.unit in _UNITS else text_field(6, curve.unit)
        yield self._child(self._processes[curve.process], uuid, curve.name, bytes_field(_COUNTER, unit))
        head = number_field(_TYPE, _VALUE) + number_field(_TRACK, uuid)
        for time_ns, value in zip(curve.times_ns, curve.values, strict=True):
            yield self._timed(time_ns, head + double_field(_DOUBLE_VALUE, value))

    def mark(self, mark: Mark) -> Iterator[bytes]:
        """Yield an instant."""
        event = self._event(_INSTANT, mark.track) + number_field(_EVENT_NAME, self._number(_NAMES, mark.name))
        event += self._annotation("text", mark.text)
        packets, self._pending = self._pending, []
        yield b"".join((*packets, self._timed(mark.time_ns, event)))

    # -- pieces of packets -------------------------------------------------------------------------

    def _event(self, kind: int, track: int) -> bytes:
        return number_field(_TYPE, kind) + number_field(_TRACK, self._tracks[track])

    def _end(self, track: int, end_ns: int) -> bytes:
        return self._timed(end_ns, self._track_ends[track])

    def _timed(self, time_ns: int, event: bytes) -> bytes:
        packet = _EVENT_HEAD + varint(time_ns - self._origin_ns) + _EVENT_TAG + varint(len(event)) + event
        return _PACKET + varint(len(packet)) + packet

    @staticmethod
    def _child(parent: int, uuid: int, name: str, more: bytes) -> bytes:
        return _descriptor(number_field(_UUID, uuid) + text_field(_NAME, name) + number_field(_PARENT, parent) + more)

    def _label(self, label: Label) -> bytes:
        names = number_field(_EVENT_NAME, self._number(_NAMES, label.op))
        category = number_field(_CATEGORY, self._number(_CATEGORIES, label.category))
        texts = (("node", label.node), ("line", label.line))
        return names + category + b"".join(self._annotation(name, text) for name, text in texts if text)

    def _step(self, step: Step) -> bytes:
        number = number_field(_ANNOTATION_NAME, self._number(_ANNOTATION_NAMES, "step"))
        return self._annotation("kind", step.kind) + bytes_field(
            _ANNOTATION, number + number_field(_INTEGER, step.number)
        )

    def _annotation(self, name: str, text: str) -> bytes:
        number = number_field(_ANNOTATION_NAME, self._number(_ANNOTATION_NAMES, name))
        return bytes_field(_ANNOTATION, number + number_field(_TEXT, self._number(_TEXTS, text)))

    def _number(self, field: int, text: str) -> int:
        """Return the number of an interned text; a new one is defined by a pending packet."""
        number = self._interned.get((field, text))
        if number is None:
            number = self._interned[field, text] = len(self._interned) + 1
            entry = bytes_field(field, number_field(1, number) + text_field(2, text))
            self._pending.append(_packet(number_field(_FLAGS, _STATE_NEEDED) + bytes_field(_INTERNED, entry)))
        return number


def _flow_fields(leaving: Iterable[int], entering: Iterable[int]) -> bytes:
    return b"".join(fixed_field(_FLOW, number) for number in leaving) + b"".join(
        fixed_field(_FLOW_END, number) for number in entering
    )


def _packet(content: bytes) -> bytes:
    return bytes_field(1, _HEAD + content)


def _descriptor(content: bytes) -> bytes:
    return _packet(bytes_field(_DESCRIPTOR, content))
