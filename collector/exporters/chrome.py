"""The format `chrome`: a trace as JSON for chrome://tracing, Perfetto and other viewers.

A job is a process, and a lane of a device is a thread.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from ...formats.version import VERSION
from ..store.columns import flat, pc
from ..tfviews.encoding import valid_utf8
from ..traces.model import Curve, Label, Mark, Process, Slices, Step, Track
from ..traces.trace import Trace
from .request import Request
from .timelines import trace_of, written

#: An encoder that is made once. json.dumps would make one for each call with these arguments.
_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
#: Large, since the texts of a batch may be more than 2 GiB.
_TEXT: Final = pa.large_binary()
_NOTHING: Final = pa.scalar(b"", _TEXT)
_THOUSANDTHS: Final = pa.array([b".%03d" % number for number in range(1000)], _TEXT)


def pieces(request: Request) -> Iterator[bytes]:
    """Return the pieces of the file; errors are those of `trace_of`."""
    return trace_pieces(trace_of(request))


def trace_pieces(trace: Trace) -> Iterator[bytes]:
    """Yield the file with ``trace``."""
    writer = _Writer(trace.origin_ns)
    yield b'{"displayTimeUnit":"ns","otherData":%b,"traceEvents":[\n' % _json(
        {"tool": f"tfprof {VERSION}", "origin_ns": str(trace.origin_ns)}
    )
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
    yield b"\n]}\n"


class _Writer:
    """Makes events, with commas between them. Times in events count from ``origin_ns``."""

    def __init__(self, origin_ns: int) -> None:
        self._origin_ns = origin_ns
        self._comma = b""
        self._pids: dict[int, int] = {}
        self._process_of_track: dict[int, int] = {}
        self._labels: dict[int, list[bytes]] = {}
        self._steps: dict[int, list[bytes]] = {}

    def process(self, process: Process) -> Iterator[bytes]:
        """Yield the name of a process."""
        self._pids[process.number] = process.own_pid
        yield self._metadata("process_name", process.own_pid, 0, {"name": process.title})
        yield self._metadata("process_sort_index", process.own_pid, 0, {"sort_index": process.number})

    def track(self, track: Track) -> Iterator[bytes]:
        """Yield the name of a thread."""
        pid = self._pids[track.process]
        self._process_of_track[track.number] = pid
        yield self._metadata("thread_name", pid, track.number, {"name": track.title})
        yield self._metadata("thread_sort_index", pid, track.number, {"sort_index": track.number})

    def slices(self, slices: Slices) -> Iterator[bytes]:
        """Yield complete events, those of a thread in the order of their starts."""
        labels = self._labels.setdefault(slices.process, [])
        labels += map(_label, slices.labels[len(labels) :])
        steps = self._steps.setdefault(slices.process, [])
        steps += map(_step, slices.steps[len(steps) :])
        events = _complete_events(slices, self._pids[slices.process], self._origin_ns, labels, steps)
        yield self._events(([events] if events else []) + list(self._flows(slices)))

    def _flows(self, slices: Slices) -> Iterator[bytes]:
        """Yield the starts and ends of flows, each at the start of its slice."""
        pid = self._pids[slices.process]
        places = slices.table.select(["track", "start_ns"])
        for row, leaving, entering in slices.flows():
            track, start_ns = (places[name][row].as_py() for name in places.column_names)
            where = b'"name":"flow","cat":"flow","pid":%d,"tid":%d,"ts":%b' % (pid, track, self._time(start_ns))
            yield from (b'{"ph":"s","id":%d,%b}' % (number, where) for number in leaving)
            yield from (b'{"ph":"f","bp":"e","id":%d,%b}' % (number, where) for number in entering)

    def curve(self, curve: Curve) -> Iterator[bytes]:
        """Yield the values of a counter."""
        head = b'{"ph":"C","pid":%d,"name":%b,"ts":' % (self._pids[curve.process], _json(curve.name))
        unit = _json(curve.unit)
        points = zip(curve.times_ns, curve.values, strict=True)
        yield self._events(
            [b'%b%b,"args":{%b:%b}}' % (head, self._time(time_ns), unit, _json(value)) for time_ns, value in points]
        )

    def mark(self, mark: Mark) -> Iterator[bytes]:
        """Yield an instant."""
        pid, name, text = self._process_of_track[mark.track], _json(mark.name), _json({"text": mark.text})
        event = b'{"ph":"i","s":"t","pid":%d,"tid":%d,"name":%b,"ts":%b,"args":%b}'
        yield self._events([event % (pid, mark.track, name, self._time(mark.time_ns), text)])

    def _time(self, time_ns: int) -> bytes:
        return b"%d.%03d" % divmod(time_ns - self._origin_ns, 1000)

    def _metadata(self, name: str, pid: int, tid: int, arguments: dict[str, object]) -> bytes:
        return self._events([_json({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": arguments})])

    def _events(self, events: list[bytes]) -> bytes:
        if not events:
            return b""
        text = self._comma + b",\n".join(events)
        self._comma = b",\n"
        return text


def _complete_events(slices: Slices, pid: int, origin_ns: int, labels: list[bytes], steps: list[bytes]) -> bytes:
    """Return the events of slices, with commas between them.

    ``labels``, ``steps``: the texts of those that the slices refer to. The columns are joined by
    Arrow, since a text for each slice takes three times as long in Python.
    """
    table = slices.table
    parts = [
        b',\n{"ph":"X","pid":%d,"tid":' % pid,
        _digits(table["track"]),
        b',"ts":',
        *_microseconds(pc.subtract(flat(table["start_ns"]), origin_ns)),
        b',"dur":',
        *_microseconds(flat(table["duration_ns"])),
        b",",
        pa.array(labels, _TEXT).take(flat(table["label"])),
        pa.array(steps, _TEXT).take(flat(table["step"])),
        b',"bytes":',
        _digits(table["bytes"]),
        b"}}",
    ]
    texts = (pa.scalar(part, _TEXT) if isinstance(part, bytes) else part for part in parts)
    joined: Any = pc.binary_join_element_wise(*texts, _NOTHING)
    # The texts of an array are one after the other in its last buffer.
    events: bytes = joined.buffers()[2].to_pybytes()[2:] if len(joined) else b""
    return events


def _microseconds(times_ns: Any) -> tuple[Any, Any]:
    """Return times as the digits before the decimal point, and those from the point on."""
    whole = pc.divide(times_ns, 1000)
    return _digits(whole), _THOUSANDTHS.take(pc.subtract(times_ns, pc.multiply(whole, 1000)))


def _digits(numbers: Any) -> Any:
    return flat(numbers).cast(pa.large_string()).cast(_TEXT)


def _label(label: Label) -> bytes:
    texts = {"node": label.node, "line": label.line}
    arguments = b"".join(b"%b:%b," % (_json(name), _json(text)) for name, text in texts.items() if text)
    return b'"name":%b,"cat":%b,"args":{%b' % (_json(label.op), _json(label.category), arguments)


def _step(step: Step) -> bytes:
    return b'"kind":%b,"step":%d' % (_json(step.kind), step.number)


def _json(value: object) -> bytes:
    """Return a value as JSON, in which invalid UTF-8 is replaced."""
    return valid_utf8(_encoded(value)).encode()
