"""Reads the XSpace of a profiler session part by part, since its messages take much memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final

from google.protobuf.message import DecodeError as ParseError

from ...formats.pb_wire import InvalidMessageError, field_contents, without_field
from ..errors import DecodeError
from .proto.xplane_pb2 import XLine, XPlane, XSpace

_LINES_FIELD: Final = XPlane.LINES_FIELD_NUMBER


@contextmanager
def xspace_errors() -> Iterator[None]:
    """Raise DecodeError if a part of a session does not parse."""
    try:
        yield
    except (InvalidMessageError, ParseError) as error:
        raise DecodeError("not an XSpace") from error


class Plane:
    """An XPlane that parses one line at a time."""

    def __init__(self, data: memoryview) -> None:
        head = XPlane.FromString(without_field(data, _LINES_FIELD))
        self.name = head.name
        self.event_metadata, self.stat_metadata, self.stats = head.event_metadata, head.stat_metadata, head.stats
        self._lines = list(field_contents(data, _LINES_FIELD))

    @property
    def lines(self) -> Iterator[XLine]:
        """The lines, each parsed when the iteration reaches it."""
        return (XLine.FromString(bytes(line)) for line in self._lines)


class Session:
    """An XSpace that parses one plane, and one of its lines, at a time.

    Malformed parts raise errors that `xspace_errors` converts.
    """

    def __init__(self, data: bytes | memoryview, bytes_max: int, events_max: int) -> None:
        """Find the planes in ``data`` and check its size.

        DecodeError if it has more than ``bytes_max`` bytes or ``events_max`` events.
        """
        if len(data) > bytes_max:
            raise DecodeError(f"a profiler session of {len(data)} bytes, more than {bytes_max}")
        self._planes = list(field_contents(memoryview(data), XSpace.PLANES_FIELD_NUMBER))
        lines = (line for plane in self._planes for line in field_contents(plane, _LINES_FIELD))
        events = (event for line in lines for event in field_contents(line, XLine.EVENTS_FIELD_NUMBER))
        if next(islice(events, events_max, None), None) is not None:
            raise DecodeError(f"a profiler session of more than {events_max} events")

    @property
    def planes(self) -> Iterator[Plane]:
        """The planes, each parsed when the iteration reaches it."""
        return map(Plane, self._planes)
