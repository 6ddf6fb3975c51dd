"""The format `pprof`: the executions of jobs by stack, with all counters at once.

A sample is one node in one step on one device. It is written as soon as it is read; the tables of
functions, locations and texts follow at the end.
"""

from collections.abc import Iterator
from typing import Final

from ..errors import StoreError, UsageError
from ..export.wire import bytes_field, number_field, text_field, varint
from ..query.explanations import untraced_reason
from ..query.facts import FLOAT_OPS
from ..query.job_selection import Selection
from ..query.profile import profile
from ..store.columns import row_tuples
from ..tfviews.nodes import STREAM
from ..traces.model import OP, Label, Process, Slices, Step, Track
from ..traces.trace import Trace
from .request import Request
from .stacks import Call, code_stack
from .timelines import written

# Fields of Profile and of its messages, as in proto/profile.proto in pprof's source.
_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _TEXT, _TIME, _COMMENT, _DEFAULT = 1, 2, 4, 5, 6, 9, 13, 14
_LOCATIONS, _VALUES, _LABEL = 1, 2, 3
#: The counters of a sample, with their units.
_COUNTERS: Final = (("executions", "count"), ("time", "nanoseconds"), ("bytes", "bytes"), ("float_ops", "count"))
_DEFAULT_COUNTER: Final = "time"


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the file; errors are those of `Trace`, and StoreError ``no-data`` without traces."""
    selection = request.selection
    trace = Trace(selection)
    if not trace.steps:
        raise StoreError(untraced_reason(selection.jobs[0]), slug="no-data")
    writer = _Writer(_float_ops(selection))
    yield writer.start(trace.origin_ns)
    yield from written(trace, {Process: writer.process, Track: writer.track, Slices: writer.slices})
    yield from writer.tables()


def _float_ops(selection: Selection) -> list[dict[str, float]]:
    """Return the operations of one execution of each node in the selected steps, for each job."""
    ops_of_jobs = []
    for job in selection.jobs:
        try:
            steps_of_job = Selection((job,), selection.steps, kinds=selection.kinds, since_ns=selection.since_ns)
            job_profile = profile(steps_of_job, required_facts=frozenset({FLOAT_OPS}), averaged=False)
        except UsageError:  # another job has the selected steps
            job_profile = None
        nodes = job_profile.nodes if job_profile else []
        ops_of_jobs.append({node.name: node.stats.float_ops / node.stats.runs for node in nodes if node.stats.runs})
    return ops_of_jobs


class _Writer:
    """Makes samples, and numbers the texts, functions and locations that they refer to."""

    def __init__(self, float_ops: list[dict[str, float]]) -> None:
        self._float_ops = float_ops
        self._texts: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str, int], int] = {}
        self._locations: dict[tuple[int, int], int] = {}
        self._processes: dict[int, bytes] = {}
        self._devices: dict[int, bytes] = {}
        self._streams: set[int] = set()  # tracks of kernels: operations are counted at the ops that start them
        self._stacks: dict[int, list[bytes]] = {}  # process -> stack and node of each label
        self._steps: dict[int, list[bytes]] = {}

    def start(self, time_ns: int) -> bytes:
        """Return the head of the file: the counters, and the start of the trace (real time)."""
        types = (number_field(1, self._text(name)) + number_field(2, self._text(unit)) for name, unit in _COUNTERS)
        head = b"".join(bytes_field(_TYPE, counter) for counter in types)
        return head + number_field(_TIME, time_ns) + number_field(_DEFAULT, self._text(_DEFAULT_COUNTER))

    def process(self, process: Process) -> Iterator[bytes]:
        """Add a job."""
        names = self._label("job", f"{process.name} {process.id}") + self._label("host", process.host)
        self._processes[process.number] = names + self._number_label("pid", process.pid)
        yield number_field(_COMMENT, self._text(process.title))

    def track(self, track: Track) -> Iterator[bytes]:
        """Add a track; its group is the device."""
        self._devices[track.number] = self._label("device", track.group)
        if STREAM in track.group.lower():
            self._streams.add(track.number)
        return iter(())

    def slices(self, slices: Slices) -> Iterator[bytes]:
        """Yield samples."""
        stacks = self._stacks.setdefault(slices.process, [])
        stacks += map(self._stack, slices.labels[len(stacks) :])
        steps = self._steps.setdefault(slices.process, [])
        steps += map(self._step, slices.steps[len(steps) :])
        keys = ["track", "label", "step"]
        grouped = slices.table.group_by(keys, use_threads=False)  # each thread would have its own sums
        sums = grouped.aggregate([([], "count_all"), ("duration_ns", "sum"), ("bytes", "sum")])
        process, float_ops = self._processes[slices.process], self._float_ops[slices.process - 1]
        samples = bytearray()
        for track, number, step, runs, time_ns, size in row_tuples(
            sums, *keys, "count_all", "duration_ns_sum", "bytes_sum"
        ):
            label = slices.labels[number]
            if label.category == OP:
                ops = 0 if track in self._streams else round(float_ops.get(label.node, 0) * runs)
                values = bytes_field(_VALUES, b"".join(map(varint, (runs, time_ns, size, ops))))
                sample = stacks[number] + values + process + self._devices[track] + steps[step]
                samples += bytes_field(_SAMPLE, sample)
        yield bytes(samples)

    def tables(self) -> Iterator[bytes]:
        """Yield the locations, the functions and the texts."""
        for (function, line), number in self._locations.items():
            place = number_field(1, function) + number_field(2, line)
            yield bytes_field(_LOCATION, number_field(1, number) + bytes_field(4, place))
        for (name, file, start_line), number in self._functions.items():
            name_number = self._text(name)
            names = number_field(2, name_number) + number_field(3, name_number) + number_field(4, self._text(file))
            yield bytes_field(_FUNCTION, number_field(1, number) + names + number_field(5, start_line))
        for text in self._texts:
            yield text_field(_TEXT, text)

    # -- pieces of samples -------------------------------------------------------------------------

    def _stack(self, label: Label) -> bytes:
        if label.category != OP:
            return b""
        numbers = b"".join(varint(self._location(call)) for call in reversed(code_stack(label)))
        return bytes_field(_LOCATIONS, numbers) + self._label("node", label.node)

    def _step(self, step: Step) -> bytes:
        return self._label("kind", step.kind) + self._number_label("step", step.number)

    def _location(self, call: Call) -> int:
        key = call.name, call.file, call.start_line
        function = self._functions.setdefault(key, len(self._functions) + 1)
        return self._locations.setdefault((function, call.line), len(self._locations) + 1)

    def _label(self, name: str, text: str) -> bytes:
        return bytes_field(_LABEL, number_field(1, self._text(name)) + number_field(2, self._text(text)))

    def _number_label(self, name: str, value: int) -> bytes:
        fields = number_field(1, self._text(name)) + number_field(3, value) + number_field(4, self._text(name))
        return bytes_field(_LABEL, fields)

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))
