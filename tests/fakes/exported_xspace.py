"""Reads exported XSpaces with the protobuf library."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tfprof.collector.decoders.proto.xplane_pb2 import XSpace


class Event(NamedTuple):
    """An event (ns from the start of the file); ``shown``: the name for people."""

    plane: str
    line: str
    name: str
    shown: str
    start_ns: int
    duration_ns: int
    stats: dict[str, Any]


def events(data: bytes) -> Iterator[Event]:
    """Yield all events; a time that is no whole ns fails."""
    for plane in XSpace.FromString(data).planes:
        names = {key: stat.name.decode() for key, stat in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                metadata = plane.event_metadata[event.metadata_id]
                name = metadata.name.decode()
                assert event.offset_ps % 1000 == event.duration_ps % 1000 == 0
                yield Event(
                    plane.name.decode(),
                    line.name.decode(),
                    name,
                    metadata.display_name.decode() or name,
                    line.timestamp_ns + event.offset_ps // 1000,
                    event.duration_ps // 1000,
                    {names[stat.metadata_id]: _value(stat) for stat in event.stats},
                )


def _value(stat: Any) -> int | str:
    value = getattr(stat, stat.WhichOneof("value"))
    return value.decode() if isinstance(value, bytes) else value


def origin_ns(data: bytes) -> int:
    """Return the real time at which the times of the file begin (ns)."""
    for plane in XSpace.FromString(data).planes:
        names = {key: stat.name.decode() for key, stat in plane.stat_metadata.items()}
        for stat in plane.stats:
            if names[stat.metadata_id] == "profile_start_time":
                return stat.uint64_value
    raise AssertionError("the file does not tell when it begins")
