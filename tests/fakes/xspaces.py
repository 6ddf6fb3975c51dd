"""Builds XSpaces of profiler sessions."""

from tfprof.collector.decoders.proto.xplane_pb2 import XPlane, XSpace
from tfprof.collector.decoders.session import Session
from tfprof.collector.decoders.xspace import BYTES_MAX, EVENTS_MAX

BEGAN_NS = 1_700_000_000_000_000_000


class Plane:
    """A plane that a test fills line by line; times are in µs from the start of the session."""

    def __init__(self, name=b"/host:CPU"):
        self.plane = XPlane(name=name)
        self._ids = {}

    def _id(self, table, name):
        if (table, name) not in self._ids:
            number = self._ids[table, name] = len(self._ids) + 1
            getattr(self.plane, table)[number].id = number
            getattr(self.plane, table)[number].name = name
        return self._ids[table, name]

    def line(self, *events, name=b"tf_Compute/1", thread=7, start_ns=0):
        """Add a line of ``events``: (name, start us, end us[, {stat: value}])."""
        line = self.plane.lines.add(id=thread, name=name, timestamp_ns=start_ns)
        for text, start_us, end_us, *stats in events:
            event = line.events.add(metadata_id=self._id("event_metadata", text))
            event.offset_ps, event.duration_ps = start_us * 10**6, (end_us - start_us) * 10**6
            for key, value in stats[0].items() if stats else ():
                stat = event.stats.add(metadata_id=self._id("stat_metadata", key))
                if isinstance(value, bytes):
                    stat.ref_value = self._id("stat_metadata", value)
                else:
                    stat.int64_value = value
        return self


def session(*planes, began_ns=BEGAN_NS):
    """Return the XSpace of ``planes``, with the start time ``began_ns`` unless that is 0."""
    space = XSpace(planes=[plane.plane for plane in planes])
    if began_ns:
        environment = Plane(b"Task Environment")
        stat = environment.plane.stats.add(metadata_id=environment._id("stat_metadata", b"profile_start_time"))
        stat.uint64_value = began_ns
        space.planes.append(environment.plane)
    return space


def opened(*planes, began_ns=BEGAN_NS):
    """Return the session of ``planes`` as the collector reads it."""
    return Session(session(*planes, began_ns=began_ns).SerializeToString(), BYTES_MAX, EVENTS_MAX)
