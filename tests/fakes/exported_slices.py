"""Reads exported timelines with readers that share no code with the exporters."""

import gzip
import json
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

#: Messages of Perfetto: fields as (number, name, type); a type with a capital letter is a message,
#: and * means repeated.
_MESSAGES = {
    "Trace": [(1, "packet", "*TracePacket")],
    "TracePacket": [
        (6, "clock_snapshot", "ClockSnapshot"),
        (8, "timestamp", "uint64"),
        (10, "trusted_packet_sequence_id", "uint32"),
        (11, "track_event", "TrackEvent"),
        (12, "interned_data", "InternedData"),
        (13, "sequence_flags", "uint32"),
        (60, "track_descriptor", "TrackDescriptor"),
        (87, "first_packet_on_sequence", "bool"),
    ],
    "ClockSnapshot": [(1, "clocks", "*Clock")],
    "Clock": [(1, "clock_id", "uint32"), (2, "timestamp", "uint64")],
    "TrackDescriptor": [
        (1, "uuid", "uint64"),
        (2, "name", "string"),
        (3, "process", "ProcessDescriptor"),
        (5, "parent_uuid", "uint64"),
        (8, "counter", "CounterDescriptor"),
        (11, "child_ordering", "int32"),
        (12, "sibling_order_rank", "int32"),
        (15, "sibling_merge_behavior", "int32"),
    ],
    "ProcessDescriptor": [(1, "pid", "int32"), (6, "process_name", "string")],
    "CounterDescriptor": [(3, "unit", "int32"), (6, "unit_name", "string")],
    "TrackEvent": [
        (3, "category_iids", "*uint64"),
        (4, "debug_annotations", "*DebugAnnotation"),
        (9, "type", "int32"),
        (10, "name_iid", "uint64"),
        (11, "track_uuid", "uint64"),
        (44, "double_counter_value", "double"),
        (47, "flow_ids", "*fixed64"),
        (48, "terminating_flow_ids", "*fixed64"),
    ],
    "DebugAnnotation": [(1, "name_iid", "uint64"), (4, "int_value", "int64"), (17, "string_value_iid", "uint64")],
    "InternedData": [
        (1, "event_categories", "*Text"),
        (2, "event_names", "*Text"),
        (3, "debug_annotation_names", "*Text"),
        (29, "debug_annotation_string_values", "*Text"),
    ],
    "Text": [(1, "iid", "uint64"), (2, "str", "string")],
}


class Slice(NamedTuple):
    """One slice; times in real ns."""

    name: str
    category: str
    start_ns: int
    duration_ns: int
    node: str
    line: str
    kind: str
    step: int


class Timeline(NamedTuple):
    """The content of a file; ``lanes``: the slices of each lane as (start, end), in its order.

    ``curves``: values of each counter. ``flows``: starts of both slices (real ns) by number.
    """

    processes: dict[int, str]
    lanes: dict[Any, list[tuple[int, int]]]
    slices: list[Slice]
    marks: list[tuple[int, str, str]]
    curves: dict[str, list[float]]
    flows: dict[int, list[int]]

    def by_type(self) -> Counter[tuple[str, int]]:
        """Return the time of each op type in ns, with the number of executions."""
        times: dict[str, list[int]] = {}
        for piece in self.slices:
            if piece.category == "op":
                times.setdefault(piece.name, []).append(piece.duration_ns)
        return Counter({(name, len(values)): sum(values) for name, values in times.items()})

    def check_nesting(self) -> None:
        """Fail if slices of a lane overlap in part, or begin before earlier ones of the lane."""
        for lane in self.lanes.values():
            stack: list[tuple[int, int]] = []
            for start, end in lane:
                while stack and stack[-1][1] <= start:
                    stack.pop()
                assert not stack or (stack[-1][0] <= start and end <= stack[-1][1])
                stack.append((start, end))
            starts = [start for start, _ in lane]
            assert starts == sorted(starts)


def _slice(name: str, category: str, start_ns: int, duration_ns: int, arguments: Mapping[str, Any]) -> Slice:
    node, line, kind = (arguments.get(key, "") for key in ("node", "line", "kind"))
    return Slice(name, category, start_ns, duration_ns, node, line, kind, arguments["step"])


def _message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="exported_slices.proto", package="exported", syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field, kind in fields:
            base = kind.lstrip("*")
            entry = message.field.add(name=field, number=number, label=3 if kind.startswith("*") else 1)
            if base[0].isupper():
                entry.type, entry.type_name = entry.TYPE_MESSAGE, f".exported.{base}"
            else:
                entry.type = entry.Type.Value(f"TYPE_{base.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("exported.Trace"))


_TRACE = _message_class()


def content(path: Path) -> bytes:
    """Return the content of a file, decompressed if it ends with `.gz`."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


class _PerfettoReader:
    """What is known of a file at a packet."""

    def __init__(self) -> None:
        self.timeline = Timeline({}, {}, [], [], {}, {})
        self.open_slices: dict[int, list[tuple[Slice, int]]] = {}  # track -> slice, and its index in the lane
        self._texts: dict[tuple[str, int], str] = {}
        self._counters: dict[int, str] = {}
        self._tracks: set[int] = set()
        self._origin = 0

    def read(self, packet: Any) -> None:
        """Read the next packet."""
        assert packet.trusted_packet_sequence_id == 1
        for kind, entries in packet.interned_data.ListFields():
            self._texts.update({(kind.name, entry.iid): entry.str for entry in entries})
        clocks = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
        self._origin = clocks.get(1, self._origin) - clocks.get(6, 0)
        if packet.HasField("track_descriptor"):
            self._read_track(packet.track_descriptor)
        if packet.HasField("track_event"):
            assert packet.sequence_flags == 2
            assert packet.track_event.track_uuid in self._tracks
            self._read_event(packet.track_event, packet.timestamp + self._origin)

    def _read_track(self, track: Any) -> None:
        assert track.uuid not in self._tracks
        assert not track.parent_uuid or track.parent_uuid in self._tracks
        self._tracks.add(track.uuid)
        if track.HasField("process"):
            self.timeline.processes[track.process.pid] = track.process.process_name
        if track.HasField("counter"):
            self._counters[track.uuid] = track.name

    def _read_event(self, event: Any, time_ns: int) -> None:
        if event.type == 1:
            self._begin(event, time_ns)
        elif event.type == 2:
            begun, index = self.open_slices[event.track_uuid].pop()
            self.timeline.slices.append(begun._replace(duration_ns=time_ns - begun.start_ns))
            self.timeline.lanes[event.track_uuid][index] = (begun.start_ns, time_ns)
        elif event.type == 3:
            name = self._texts["event_names", event.name_iid]
            self.timeline.marks.append((time_ns, name, self._arguments(event)["text"]))
        else:
            values = self.timeline.curves.setdefault(self._counters[event.track_uuid], [])
            values.append(event.double_counter_value)

    def _begin(self, event: Any, time_ns: int) -> None:
        name, category = self._texts["event_names", event.name_iid], event.category_iids[0]
        begun = _slice(name, self._texts["event_categories", category], time_ns, -1, self._arguments(event))
        lane = self.timeline.lanes.setdefault(event.track_uuid, [])
        self.open_slices.setdefault(event.track_uuid, []).append((begun, len(lane)))
        lane.append((time_ns, -1))
        for number in event.flow_ids:
            self.timeline.flows.setdefault(number, []).insert(0, time_ns)
        for number in event.terminating_flow_ids:
            self.timeline.flows.setdefault(number, []).append(time_ns)

    def _arguments(self, event: Any) -> dict[str, Any]:
        return {
            self._texts["debug_annotation_names", value.name_iid]: value.int_value
            if value.HasField("int_value")
            else self._texts["debug_annotation_string_values", value.string_value_iid]
            for value in event.debug_annotations
        }


def perfetto(data: bytes) -> Timeline:
    """Read Perfetto's protobuf."""
    packets = _TRACE.FromString(data).packet
    assert packets[0].sequence_flags == 3
    assert packets[0].first_packet_on_sequence
    reader = _PerfettoReader()
    for packet in packets:
        reader.read(packet)
    assert not any(reader.open_slices.values()), "a slice has no end"
    return reader.timeline


def chrome(data: bytes) -> Timeline:
    """Read the JSON of chrome://tracing, without a rounding of times."""
    document = json.loads(data, parse_float=Decimal)
    origin = int(document["otherData"]["origin_ns"])
    timeline = Timeline({}, {}, [], [], {}, {})
    for event in document["traceEvents"]:
        start = origin + int(event["ts"] * 1000) if "ts" in event else 0
        if event["ph"] == "X":
            duration = int(event["dur"] * 1000)
            timeline.slices.append(_slice(event["name"], event["cat"], start, duration, event["args"]))
            timeline.lanes.setdefault((event["pid"], event["tid"]), []).append((start, start + duration))
        elif event["ph"] in {"s", "f"}:
            assert (event["pid"], event["tid"], start) in {
                (*key, begin) for key, lane in timeline.lanes.items() for begin, _ in lane
            }
            timeline.flows.setdefault(event["id"], []).insert(0 if event["ph"] == "s" else 1, start)
        elif event["ph"] == "i":
            timeline.marks.append((start, event["name"], event["args"]["text"]))
        elif event["ph"] == "C":
            timeline.curves.setdefault(event["name"], []).extend(map(float, event["args"].values()))
        elif event["name"] == "process_name":
            timeline.processes[event["pid"]] = event["args"]["name"]
    return timeline
