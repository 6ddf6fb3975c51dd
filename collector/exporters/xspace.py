"""Writes one job as an XSpace, the file of TensorFlow's own profiler, for XProf's tools.

The plane of the host has a line for each lane of a device, and the steps. A GPU with recorded
kernels is a plane of its own. Planes are written to temporary files first, since a message begins
with its length.
"""

import re
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Final, NamedTuple, Self

from ...formats.pb_wire import BYTES, VARINT
from ..export.wire import bytes_field, number_field, tag, text_field, varint
from ..tfviews.nodes import STREAM
from ..traces.job_trace import SPANS, TRACED_STEPS
from ..traces.model import INPUT, OP, Label, Mark, Process, Slices, Step, Track

#: Size of the largest protocol buffer that the readers accept.
BYTES_MAX: Final = (1 << 31) - 1

# Numbers of fields, as in xplane.proto in TensorFlow's source.
_PLANE, _WARNING, _HOSTNAME = 1, 3, 4
_ID, _NAME, _LINE, _EVENT_METADATA, _STAT_METADATA, _PLANE_STAT = 1, 2, 3, 4, 5, 6
_TIMESTAMP, _EVENT = 3, 4
_METADATA, _OFFSET, _DURATION, _STAT = 1, 2, 3, 4
_UNSIGNED, _INTEGER, _TEXT = 3, 4, 5
_DISPLAY_NAME, _METADATA_STAT = 4, 5
_OFFSET_TAG, _DURATION_TAG, _EVENT_TAG = tag(_OFFSET, VARINT), tag(_DURATION, VARINT), tag(_EVENT, BYTES)

#: Names of stats, by which XProf finds what it needs.
_STATS: Final = {
    name: number
    for number, name in enumerate(
        (
            "_r",
            "step_num",
            "group_id",
            "step_name",
            "tf_op",
            "correlation_id",
            "bytes",
            "source",
            "text",
            "profile_start_time",
            "profile_stop_time",
        ),
        1,
    )
}
_HOST_PLANE, _ENVIRONMENT_PLANE = "/host:CPU", "Task Environment"
#: Id of the line of a GPU's steps, which XProf knows.
_STEPS_LINE: Final = -559038737
#: Beginning of the names of events that XProf takes for a wait for input.
_WAIT: Final = "IteratorGetNext"
#: Name of steps; XProf knows steps by it.
_MARKER: Final = "train"
#: Group ids below this bound are numbers of steps.
_GROUP_MAX: Final = 1 << 31
#: Number of steps up to which XProf shows all of them.
_COMPLETE_MAX: Final = 5
#: The trace viewer shows this text for the added steps before and after all others.
_IGNORED: Final = "not a step: XProf leaves out the first and the last one"
_BEGIN: Final = "begin of step"
#: Beginnings of names that XProf takes for steps.
_MARKERS: Final = (_MARKER, "test", "TraceContext")
_GPU: Final = re.compile(r"/(?:device:)?gpu:(\d+)/" + STREAM, re.IGNORECASE)
#: Characters that XProf does not accept in the name and in the type of an op.
_ODD_NAME, _ODD_TYPE = re.compile(r"[^A-Za-z0-9_./>-]+"), re.compile(r"[^A-Za-z0-9_]+")
_NAME_START, _TYPE_START = re.compile(r"[A-Za-z0-9.]"), re.compile(r"[A-Z_]")
_COPY: Final = re.compile(r"memcpy(h2d|d2h|d2d|htod|dtoh|dtod)", re.IGNORECASE)
#: Bytes of a plane that are in memory before they go to a file, and size of the pieces of the file.
IN_MEMORY: Final = 32 << 20
_PIECE: Final = 1 << 20
_PS: Final = 1000


class _Line(NamedTuple):
    """A line; ``head``: its first fields. ``group`` is what it belongs to, such as a device."""

    plane: "_Plane"
    head: bytes
    group: str


class XSpace:
    """The XSpace of the job on ``host``; times count from the start of ``window_ns``.

    ``left_out``: number of traced steps that are not in the file. Used as a context: at its end,
    the temporary files are removed.
    """

    def __init__(self, host: str, window_ns: tuple[int, int], left_out: int = 0) -> None:
        self._host, self._left_out = host, left_out
        self._window_ns = window_ns
        self._planes: dict[str, _Plane] = {_HOST_PLANE: _Plane(0, _HOST_PLANE)}
        self._lines: dict[int, _Line] = {}
        self._groups: dict[Step, int] = {}  # group ids, in the order of time
        self._last_group = 0
        self._steps: list[_Step] = []
        self._steps_head = b""  # the beginning of the line of the traced steps
        self._heads: dict[tuple[str, int], _Head] = {}  # plane, label -> beginning of its events
        self._group_stats: dict[int, bytes] = {}  # index of a step -> stat of its group
        self._kernels = 0

    def __enter__(self) -> Self:
        """Return the XSpace."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove the temporary files."""
        for plane in self._planes.values():
            plane.close()

    # -- parts of a trace --------------------------------------------------------------------------

    def process(self, process: Process) -> None:
        """Add the process."""

    def track(self, track: Track) -> None:
        """Add a line."""
        match = _GPU.search(track.group)
        name = f"/device:GPU:{match[1]}" if match else _HOST_PLANE
        plane = self._planes.get(name)
        if plane is None:
            plane = self._planes[name] = _Plane(len(self._planes), name)
        title = f"Stream {track.title}" if match else track.title
        head = number_field(_ID, track.number) + text_field(_NAME, title)
        self._lines[track.number] = _Line(plane, head, track.group)

    def slices(self, slices: Slices) -> None:
        """Add slices: those of a line as a line of the same id."""
        group = self._lines[slices.table["track"][0].as_py()].group
        if group == TRACED_STEPS:
            self._add_steps(slices)
        elif group == SPANS:
            self._add_spans(slices)
        else:
            self._add_executions(slices)

    def mark(self, mark: Mark) -> None:
        """Add a moment, as an event without a duration."""
        first_ns, last_ns = self._window_ns
        if first_ns <= mark.time_ns <= last_ns:
            line = self._lines[mark.track]
            event = line.plane.event(mark.name) + _times(mark.time_ns - first_ns, 0) + _text_stat("text", mark.text)
            line.plane.add_line(line.head, 0, [event])

    def finish(self) -> None:
        """Add what is known when all parts are there."""
        host = self._planes[_HOST_PLANE]
        if len(self._planes) == 1 and len(self._steps) > _COMPLETE_MAX:
            # XProf then takes the first and the last step for incomplete ones, and leaves them out.
            end_ns = self._window_ns[1] - self._window_ns[0]
            for step in (_Step(0, _IGNORED, 0, 1), _Step(self._last_group + 1, _IGNORED, end_ns, 1)):
                host.add_line(self._steps_head, 0, _step_events(host, step, _IGNORED))
        for plane in self._planes.values():
            if plane is not host:
                events = [plane.event(step.name) + step.times_and_stats for step in self._steps]
                plane.add_line(number_field(_ID, _STEPS_LINE) + text_field(_NAME, "Steps"), 0, events)
        environment = self._planes[_ENVIRONMENT_PLANE] = _Plane(len(self._planes), _ENVIRONMENT_PLANE)
        for name, time_ns in zip(("profile_start_time", "profile_stop_time"), self._window_ns, strict=True):
            environment.add_stat(number_field(_METADATA, _STATS[name]) + number_field(_UNSIGNED, time_ns))

    @property
    def size(self) -> int:
        """Number of bytes of the planes."""
        return sum(plane.size for plane in self._planes.values())

    def pieces(self) -> Iterator[bytes]:
        """Yield the file, once `finish` was called."""
        for plane in self._planes.values():
            yield from plane.pieces()
        if self._left_out:
            yield text_field(_WARNING, f"{self._left_out} traced steps before these are not in this file")
        yield text_field(_HOSTNAME, self._host)

    # -- events ------------------------------------------------------------------------------------

    def _add_steps(self, slices: Slices) -> None:
        """Add the traced steps, which XProf finds by their name and stats."""
        origin_ns = self._window_ns[0]
        for track, _depth, _label, number, start_ns, duration_ns, _size in slices.rows():
            step, line = slices.steps[number], self._lines[track]
            name = f"{step.kind} {step.number}"
            self._steps.append(_Step(self._group(step), name, start_ns - origin_ns, duration_ns))
            self._steps_head = line.head
            stats = _number_stat("_r", 1) + _number_stat("step_num", step.number)
            line.plane.add_line(line.head, 0, _step_events(line.plane, self._steps[-1], step.kind, stats))

    def _add_spans(self, slices: Slices) -> None:
        """Add the steps and phases that begin while steps are traced."""
        first_ns, last_ns = self._window_ns
        for track, _depth, label, number, start_ns, duration_ns, _size in slices.rows():
            if first_ns <= start_ns <= last_ns:
                line = self._lines[track]
                event = line.plane.event(_colon_free(slices.labels[label].op)) + _times(0, duration_ns)
                stats = _number_stat("step_num", slices.steps[number].number)
                line.plane.add_line(line.head, start_ns - first_ns, [event + stats])

    def _add_executions(self, slices: Slices) -> None:
        origin_ns = self._window_ns[0]
        events: dict[int, list[bytes]] = {}
        firsts: dict[int, int] = {}
        heads: dict[tuple[int, int], _Head] = {}
        for (track, _depth, label, step, start_ns, duration_ns, size), waits in zip(
            slices.rows(), slices.waits(), strict=True
        ):
            head = heads.get((track, label))
            if head is None:
                head = heads[track, label] = self._head(self._lines[track].plane, slices.labels[label], label)
            first_ns = firsts.setdefault(track, start_ns)
            times = _times(start_ns - first_ns, duration_ns)
            event = head.event + times
            group = self._group_stat(slices, step)
            if head.has_group or waits:
                event += group
            if head.is_kernel:
                event += _number_stat("correlation_id", self._kernels)
                self._kernels += 1
            if size:
                event += _number_stat("bytes", size)
            of_track = events.setdefault(track, [])
            of_track.append(event)
            if waits and not head.is_wait:
                of_track.append(self._lines[track].plane.event(_WAIT) + times + group)
        for track, of_track in events.items():
            line = self._lines[track]
            line.plane.add_line(line.head, firsts[track] - origin_ns, of_track)

    def _head(self, plane: "_Plane", label: Label, number: int) -> "_Head":
        """Return the beginning of the events of a label on a plane."""
        key = plane.name, number
        if key not in self._heads:
            self._heads[key] = _head(plane, label)
        return self._heads[key]

    def _group_stat(self, slices: Slices, step: int) -> bytes:
        stat = self._group_stats.get(step)
        if stat is None:
            stat = self._group_stats[step] = _number_stat("group_id", self._group(slices.steps[step]))
        return stat

    def _group(self, step: Step) -> int:
        """Return the group id of a step: its number, which XProf shows for GPUs, if it is free."""
        group = self._groups.get(step)
        if group is None:
            is_free = self._last_group < step.number < _GROUP_MAX
            group = self._groups[step] = self._last_group = step.number if is_free else self._last_group + 1
        return group


class _Step(NamedTuple):
    """A step, which counts from the start of the file."""

    group: int
    name: str
    start_ns: int
    duration_ns: int

    @property
    def times_and_stats(self) -> bytes:
        """What follows the name in an event of this step."""
        stats = _number_stat("group_id", self.group) + _text_stat("step_name", self.name)
        return _times(self.start_ns, self.duration_ns) + stats


def _step_events(plane: "_Plane", step: _Step, title: str, stats: bytes = b"") -> list[bytes]:
    """Return the events of a step, which has ``title`` in the trace viewer.

    XProf leaves out a step without any computation; so there is one of 1 ns.
    """
    marker = plane.event(_MARKER, title) + step.times_and_stats + stats
    computation = plane.event(_BEGIN) + _times(step.start_ns, 1) + _number_stat("group_id", step.group)
    return [marker, computation]


class _Head(NamedTuple):
    """The beginning of an event, and the facts that determine its other fields.

    ``has_group``: the event belongs to a step. ``is_wait``: XProf takes it for a wait for input.
    """

    event: bytes
    has_group: bool = True
    is_kernel: bool = False
    is_wait: bool = False


def _head(plane: "_Plane", label: Label) -> _Head:
    if plane.name != _HOST_PLANE:
        copy = _copy_name(label)
        name = copy or _colon_free(label.op)
        op = b"" if copy or label.category != OP else _text_stat("tf_op", _op_name(label))
        return _Head(plane.event(name, "" if name == label.op else label.op, label.line) + op, is_kernel=True)
    if label.category == OP:
        name, text = _op_name(label), f"{label.node}:{label.op}"
        event = plane.event(name, "" if name == text else text, label.line)
        return _Head(event, is_wait=name.startswith(_WAIT))
    if label.category == INPUT:
        name = label.node or label.op  # XProf knows iterators by their names
        return _Head(plane.event(name), has_group=False, is_wait=name.startswith(_WAIT))
    name = _copy_name(label) or _unlike_step(_colon_free(label.op))
    return _Head(plane.event(name, "" if name == label.op else label.op), is_wait=name.startswith(_WAIT))


def _op_name(label: Label) -> str:
    """Return the name of an event that XProf reads as an op: `NODE:TYPE`."""
    node, op = _ODD_NAME.sub("_", label.node), _ODD_TYPE.sub("_", label.op)
    node = node if _NAME_START.match(node) else f".{node}"
    return f"{_unlike_step(node)}:{op if _TYPE_START.match(op) else f'_{op}'}"


def _unlike_step(name: str) -> str:
    """Return the name such that XProf does not take the event for a step."""
    return f".{name}" if name.startswith(_MARKERS) and "/" not in name else name


def _colon_free(name: str) -> str:
    """Return the name such that XProf does not take the event for an op."""
    return name.replace(":", ".")


def _copy_name(label: Label) -> str:
    """Return the name by which XProf knows a copy to or from a GPU, empty for anything else."""
    match = _COPY.match(label.op)
    return f"MEMCPY{match[1][0].upper()}to{match[1][-1].upper()}" if match else ""


class _Plane:
    """An XPlane. Its lines are in a temporary file once they are large."""

    def __init__(self, number: int, name: str) -> None:
        self.name = name
        self._start = number_field(_ID, number) + text_field(_NAME, name)
        self._lines = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # closed by `close`
        self._lines_size = 0
        self._events: dict[tuple[str, str, str], bytes] = {}
        self._metadata: list[bytes] = []
        self._stats = b""

    def event(self, name: str, display_name: str = "", source: str = "") -> bytes:
        """Return the beginning of an event of this name.

        ``display_name``: the name for people if it differs. ``source``: the user's line.
        """
        key = name, display_name, source
        field = self._events.get(key)
        if field is None:
            number = len(self._events) + 1
            field = self._events[key] = number_field(_METADATA, number)
            content = number_field(_ID, number) + text_field(_NAME, name)
            content += text_field(_DISPLAY_NAME, display_name) if display_name else b""
            content += bytes_field(_METADATA_STAT, _text_of("source", source)) if source else b""
            self._metadata.append(_entry(_EVENT_METADATA, number, content))
        return field

    def add_line(self, head: bytes, start_ns: int, events: list[bytes]) -> None:
        """Add a line whose events count from ``start_ns``."""
        content = [head, number_field(_TIMESTAMP, max(start_ns, 0))]
        for event in events:
            content += (_EVENT_TAG, varint(len(event)), event)
        line = b"".join(content)
        line = tag(_LINE, BYTES) + varint(len(line)) + line
        self._lines_size += self._lines.write(line)

    def add_stat(self, stat: bytes) -> None:
        """Add a stat of the plane itself."""
        self._stats += bytes_field(_PLANE_STAT, stat)

    @property
    def size(self) -> int:
        """Number of bytes of the plane."""
        return len(self._start) + self._lines_size + sum(map(len, self._metadata)) + len(_STAT_ENTRIES + self._stats)

    def pieces(self) -> Iterator[bytes]:
        """Yield the plane as a field of the XSpace."""
        yield tag(_PLANE, BYTES) + varint(self.size) + self._start
        self._lines.seek(0)
        while piece := self._lines.read(_PIECE):
            yield piece
        yield from self._metadata
        yield _STAT_ENTRIES + self._stats

    def close(self) -> None:
        """Remove the temporary file."""
        self._lines.close()


def _times(start_ns: int, duration_ns: int) -> bytes:
    return _OFFSET_TAG + varint(start_ns * _PS) + _DURATION_TAG + varint(duration_ns * _PS)


def _number_stat(name: str, value: int) -> bytes:
    return bytes_field(_STAT, number_field(_METADATA, _STATS[name]) + number_field(_INTEGER, value))


def _text_stat(name: str, text: str) -> bytes:
    return bytes_field(_STAT, _text_of(name, text))


def _text_of(name: str, text: str) -> bytes:
    return number_field(_METADATA, _STATS[name]) + text_field(_TEXT, text)


def _entry(field: int, number: int, content: bytes) -> bytes:
    """Return an entry of a map."""
    return bytes_field(field, number_field(1, number) + bytes_field(2, content))


#: The names of all stats, which each plane has.
_STAT_ENTRIES: Final = b"".join(
    _entry(_STAT_METADATA, number, number_field(_ID, number) + text_field(_NAME, name))
    for name, number in _STATS.items()
)
