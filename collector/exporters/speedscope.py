"""The format `speedscope`: profiles by name scope and by line, and a timeline of each lane."""

import json
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Any, Final

from ...formats.version import VERSION
from ..store.columns import row_tuples
from ..tfviews.encoding import valid_utf8
from ..traces.model import OP, Label, Process, Slices, Track
from .request import Request
from .stacks import Call, code_stack, scope_stack
from .timelines import trace_of, written

_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
#: Profiles of a job: what their stacks consist of, and the function that returns a stack.
_STACKS: Final[tuple[tuple[str, Callable[[Label], list[Call]]], ...]] = (
    ("name scopes", scope_stack),
    ("lines of Python", code_stack),
)


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the file; errors are those of `trace_of`."""
    trace = trace_of(request)
    with tempfile.TemporaryFile() as events:
        writer = _Writer(trace.origin_ns, events)
        yield from written(trace, {Process: writer.process, Track: writer.track, Slices: writer.slices})
        head = {"$schema": _SCHEMA, "exporter": f"tfprof {VERSION}", "name": writer.title()}
        yield _json(head)[:-1] + b',"profiles":[\n'
        comma = b""
        for profile in writer.profiles():
            yield comma
            yield from profile
            comma = b",\n"
        yield b'],"shared":{"frames":%b}}\n' % _json(writer.frames())


class _Lane:
    """The timeline of one track: its events in the temporary file, and its open slices.

    ``pieces``: offset and size of each piece of events. ``open_slices``: end and frame, outermost
    first.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.pieces: list[tuple[int, int]] = []
        self.open_slices: list[tuple[int, int]] = []

    def closed(self, depth: int) -> Iterator[tuple[str, int, int]]:
        """Yield the ends of the open slices within ``depth`` other ones, innermost first."""
        while len(self.open_slices) > depth:
            yield ("C", *self.open_slices.pop())


class _Writer:
    """Collects profiles. Timelines are kept in the file ``events`` until all slices are known."""

    def __init__(self, origin_ns: int, events: IO[bytes]) -> None:
        self._origin_ns, self._events = origin_ns, events
        self._end_ns = origin_ns
        self._processes: dict[int, Process] = {}
        self._lanes: dict[int, _Lane] = {}
        self._frames: dict[Call, int] = {}
        self._frames_of_labels: dict[int, list[int]] = {}
        self._sums: dict[int, dict[Label, int]] = {}

    def process(self, process: Process) -> Iterator[bytes]:
        """Add a process."""
        self._processes[process.number] = process
        return iter(())

    def track(self, track: Track) -> Iterator[bytes]:
        """Add a track."""
        self._lanes[track.number] = _Lane(f"{self._processes[track.process].title}: {track.title}")
        return iter(())

    def slices(self, slices: Slices) -> Iterator[bytes]:
        """Add slices to the timelines of their tracks, and to the sums of their job."""
        frames = self._frames_of_labels.setdefault(slices.process, [])
        frames += [self._frame(Call(label.op, label.line)) for label in slices.labels[len(frames) :]]
        events: dict[int, list[tuple[str, int, int]]] = {}
        for number, depth, label, _step, start_ns, duration_ns, _size in slices.rows():
            lane, end_ns = self._lanes[number], start_ns + duration_ns
            events.setdefault(number, []).extend((*lane.closed(depth), ("O", start_ns, frames[label])))
            lane.open_slices.append((end_ns, frames[label]))
            self._end_ns = max(self._end_ns, end_ns)
        for number, lane_events in events.items():
            self._keep(self._lanes[number], lane_events)
        self._add_sums(slices)
        return iter(())

    def title(self) -> str:
        """Return the names of the jobs."""
        return ", ".join(process.title for process in self._processes.values())

    def frames(self) -> list[dict[str, Any]]:
        """Return the shared frames."""
        return [
            {
                name: value
                for name, value in zip(("name", "file", "line"), call, strict=False)
                if value or name == "name"
            }
            for call in self._frames
        ]

    def profiles(self) -> Iterator[Iterator[bytes]]:
        """Yield the profiles, each in pieces.

        Timelines have the same start and end, so that they are aligned.
        """
        for number, sums in self._sums.items():
            for name, stack_of in _STACKS:
                stacks = [[self._frame(call) for call in stack_of(label)] for label in sums]
                head = self._profile("sampled", f"{self._processes[number].title}: {name}", sum(sums.values()))
                yield iter([head[:-1], b',"samples":%b,"weights":%b}' % (_json(stacks), _json(list(sums.values())))])
        for lane in self._lanes.values():
            self._keep(lane, list(lane.closed(0)))
            if lane.pieces:
                yield self._timeline(lane)

    def _timeline(self, lane: _Lane) -> Iterator[bytes]:
        yield self._profile("evented", lane.name, self._end_ns - self._origin_ns)[:-1]
        start = b',"events":['
        for offset, size in lane.pieces:
            self._events.seek(offset)
            yield start + self._events.read(size)
            start = b","
        yield b"]}"

    def _profile(self, kind: str, name: str, end: int) -> bytes:
        return _json({"type": kind, "name": name, "unit": "nanoseconds", "startValue": 0, "endValue": end})

    def _frame(self, call: Call) -> int:
        return self._frames.setdefault(call, len(self._frames))

    def _add_sums(self, slices: Slices) -> None:
        table = slices.table.group_by("label").aggregate([("duration_ns", "sum")])
        for number, duration_ns in row_tuples(table, "label", "duration_ns_sum"):
            label = slices.labels[number]
            if label.category == OP:
                sums = self._sums.setdefault(slices.process, {})
                sums[label] = sums.get(label, 0) + duration_ns

    def _keep(self, lane: _Lane, events: list[tuple[str, int, int]]) -> None:
        if events:
            text = b",".join(
                b'{"type":"%b","at":%d,"frame":%d}' % (kind.encode(), time_ns - self._origin_ns, frame)
                for kind, time_ns, frame in events
            )
            lane.pieces.append((self._events.seek(0, 2), len(text)))
            self._events.write(text)


def _json(value: object) -> bytes:
    """Return a value as JSON, in which invalid UTF-8 is replaced."""
    return valid_utf8(json.dumps(value, ensure_ascii=False)).encode()
