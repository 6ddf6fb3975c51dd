"""Finds the op executions in the XSpace of a profiler session, with their times and memory."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, chain
from typing import Final, NamedTuple

from ..store.devices import ITERATOR_DEVICE, PIPELINE_DEVICE, PIPELINE_SCOPE
from . import compiled
from .calls import EVENTS as CALL_EVENTS
from .calls import PROCESS, PROPAGATE, UNSEEN, Calls, call_id, in_pool, is_of_pipeline
from .memory_changes import FRAGMENTATION, SIGNS, MemoryEvent, memory_event, number_in
from .proto.xplane_pb2 import XEvent, XEventMetadata, XLine, XStat
from .session import Plane, Session

#: Name of the first CPU in RunMetadata.
HOST_DEVICE: Final = b"/job:localhost/replica:0/task:0/device:CPU:0"
ITERATOR_LABEL: Final = b"tf.data"

_HOST_PLANE: Final = re.compile(rb"/host:CPU\Z")
_DEVICE_PLANE: Final = re.compile(rb"/device:(?!CUSTOM)\w+:\d+\Z")
_OP: Final = re.compile(rb"([A-Za-z0-9.][A-Za-z0-9_.\\/>-]*):(_*[A-Z]\w*)\Z")
_EAGER_OP: Final = re.compile(rb"EagerLocalExecute: (_*[A-Z]\w*)\Z")
_ITERATOR: Final = re.compile(rb"Iterator::\w")
_INLINED: Final = compiled.INLINED
_ASYNC_START, _ASYNC_DONE = b"ExecutorState::ProcessAsync::Start", b"ExecutorState::ProcessAsync::Done"
#: Event of a function that XLA compiled.
_COMPILED: Final = re.compile(rb"([^:]+):\1\Z")
_FUNCTION_NAME: Final = re.compile(rb"__inference_(.+)_\d+\Z")
#: Types of ops that run a program that XLA compiled.
_RUNS_PROGRAM: Final = frozenset({b"XlaLaunch", b"XlaLaunchV2", b"_XlaRun"})
#: Stats of an event of an HLO instruction: its name, and the name and number of its program; the
#: programs of one function have one name. The instruction may end on another thread. The event of
#: its end has the same id and begins with _END.
_INSTRUCTION, _MODULE, _NUMBER = b"hlo_op", b"hlo_module", b"program_id"
_START_ID, _END_ID, _END = b"_p", b"_c", b"end: "
#: Events of the call of a function, without those of its ops.
_CALL: Final = re.compile(rb"TFE_|Eager|CopyInputToExpectedDevice\Z|ValidateInputTypeAndPlacement\Z|KernelAndDevice")
#: Event of an iterator that returned a batch; its stats have the size of the tensors (bytes) and
#: the id of the step.
_BATCH: Final = b"IteratorGetNextOp::DoCompute"
_ITERATOR_NEXT: Final = b"IteratorGetNext"
#: Ops that only wait for a function, whose ops have their own events.
_CALL_OPS: Final = frozenset(
    {b"Case", b"For", b"If", b"PartitionedCall", b"RemoteCall", b"StatefulPartitionedCall", b"StatelessCase"}
    | {b"StatelessIf", b"StatelessWhile", b"SymbolicGradient", b"While"}
)
#: A time later than that of any event.
_END_PS: Final = 1 << 80
_ENVIRONMENT: Final = b"Task Environment"
_START_STAT: Final = b"profile_start_time"
#: Stats of an event that marks a step, and of one that calls a function.
_STEP_NUMBER, _ROOT_STAT, _CALL_STAT = b"step_num", b"_r", b"tf_function_call"


@dataclass(slots=True)
class OpMemory:
    """Memory that an op allocated while it ran, as its allocator reports it (bytes)."""

    allocator: bytes = b""
    total: int = 0
    peak: int = 0
    live: int = 0  # allocated and not freed
    in_use: int = 0
    output: int = 0  # bytes of a batch that an iterator returned
    block_sizes: dict[int, int] = field(default_factory=dict)  # bytes of live blocks, by address


#: Memory of an op that allocated nothing, shared by most ops; it is never modified.
NO_MEMORY: Final = OpMemory()


class Execution(NamedTuple):
    """One op execution.

    `start_ns`: start in real time. `own_ns`: duration without the ops nested in it on its thread.
    `call`: id of the function call that the op belongs to, 0 if there is none, or `calls.UNSEEN`.
    """

    device: bytes
    node: bytes
    label: bytes
    thread: int
    start_ns: int
    own_ns: int
    memory: OpMemory
    call: int = 0


class _Op(NamedTuple):
    """Facts that all executions of one event name share."""

    device: bytes
    node: bytes
    label: bytes
    is_eager: bool = False


class _Batch(NamedTuple):
    """A batch that an iterator returned."""

    size: int  # bytes
    end_ps: int  # when it was returned


class _Event(NamedTuple):
    name: bytes
    display_name: bytes
    op: _Op | None
    start_ps: int
    end_ps: int
    stats: Iterable[XStat]
    shared_stats: Iterable[XStat]


@dataclass(slots=True)
class _OpenOp:
    """An op that may enclose others."""

    op: _Op
    start_ps: int
    end_ps: int
    call: int
    inner_ps: int = 0
    inner_ops: int = 0
    memory: OpMemory | None = None


def executions(
    space: Session,
    started_ns: int,
    caller: int = 0,
    memory: list[MemoryEvent] | None = None,
    programs: dict[bytes, bytes] | None = None,
) -> Iterator[Execution]:
    """Yield the op executions of all planes, without those in function calls of other threads.

    ``started_ns``: start of the session (real time), used if the XSpace has none. ``caller``: the
    step's thread (thread_lines.py); if it is unknown, nothing is left out. ``memory`` receives the
    events of allocators, which serve all threads. ``programs`` receives what XLA compiled, as
    HloProto, by name and number: `MODULE(NUMBER)`.
    """
    planes = list(space.planes)
    start_ns = _session_start(planes) or started_ns
    events = [] if memory is None else memory
    programs = {} if programs is None else programs
    programs.update(_programs(planes))
    for plane in planes:
        for pattern, read in _READERS.items():
            if pattern.match(plane.name):
                yield from read(_Plane(plane, start_ns, programs), Calls(caller), events)


def _programs(planes: Iterable[Plane]) -> dict[bytes, bytes]:
    """Return the programs that XLA compiled, as HloProto, by name and number."""
    programs = {}
    for plane in planes:
        if plane.name == compiled.PLANE:
            stats = [key for key, value in plane.stat_metadata.items() if value.name == compiled.PROGRAM_STAT]
            for event in plane.event_metadata.values():
                for stat in event.stats:
                    if stat.metadata_id in stats:
                        programs[event.name] = stat.bytes_value
    return programs


def _session_start(planes: Iterable[Plane]) -> int:
    """Return the start of the session in real time (ns), 0 if the XSpace has none."""
    for plane in planes:
        if plane.name == _ENVIRONMENT:
            names = {key: value.name for key, value in plane.stat_metadata.items()}
            for stat in plane.stats:
                if names.get(stat.metadata_id) == _START_STAT:
                    return stat.uint64_value or stat.int64_value
    return 0


class Marker(NamedTuple):
    """An event that shows a step (real time, ns).

    A marked step has a ``number``. A call of a function has no number, and no other call is around
    it on its thread. ``title``: another name for people, empty if there is none.
    """

    name: bytes
    title: bytes
    number: int | None
    thread: int
    start_ns: int
    duration_ns: int


def markers(space: Session, started_ns: int) -> Iterator[Marker]:
    """Yield the marked steps and the calls of functions of a session.

    ``started_ns``: start of the session (real time), used if the XSpace has none.
    """
    planes = list(space.planes)
    start_ns = _session_start(planes) or started_ns
    for host in planes:
        if _HOST_PLANE.match(host.name):
            plane = _Plane(host, start_ns)
            for line in plane.lines:
                yield from _line_markers(plane, line)


def _line_markers(plane: "_Plane", line: XLine) -> Iterator[Marker]:
    end_ps = -1  # of the last call of a function
    for event in plane.events(line):
        stats = plane.stats(event)
        is_step = _STEP_NUMBER in stats and stats.get(_ROOT_STAT) == 1
        is_call = not is_step and _CALL_STAT in stats and event.start_ps >= end_ps
        if is_call:
            end_ps = event.end_ps
        if is_step or is_call:
            number = number_in(stats, _STEP_NUMBER) if is_step else None
            thread = line.id & 0xFFFFFFFF
            times = event.start_ps // 1000, (event.end_ps - event.start_ps) // 1000
            yield Marker(event.name, event.display_name, number, thread, *times)


def runs_no_op(space: Session, *, may_be_idle: bool = False) -> bool:
    """Return whether the events of a session without ops show that this process ran no op.

    ``may_be_idle``: a session without any event shows this, too.
    """
    names = {
        event.name for plane in space.planes if _HOST_PLANE.match(plane.name) for event in plane.event_metadata.values()
    }
    return bool(names or may_be_idle) and all(map(_CALL.match, names))


class _EventName(NamedTuple):
    """The parsed name of an event.

    `is_relevant`: whether events of this name are read on the threads of a host. `stats`: those
    that all its events share, as on TPUs.
    """

    name: bytes
    display_name: bytes
    op: _Op | None
    is_relevant: bool
    stats: Sequence[XStat] = ()

    @classmethod
    def from_metadata(cls, event: XEventMetadata) -> "_EventName":
        """Parse the name of ``event``."""
        op = _op(event.name)
        is_relevant = (
            op is not None or event.name in _MEMORY_EVENTS or event.name in _OTHER_EVENTS or event.name.startswith(_END)
        )
        return cls(event.name, event.display_name, op, is_relevant, event.stats)


_NO_NAME: Final = _EventName(b"", b"", None, is_relevant=False)


def _op(name: bytes) -> _Op | None:
    """Return the op of an event name, None if such events are not ops."""
    match = _OP.match(name)
    if match:
        return None if match[2] in _CALL_OPS else _Op(HOST_DEVICE, _INLINED.sub(b"", match[1], count=1), match[2])
    compiled_match = _COMPILED.match(name)
    if compiled_match:
        return _Op(HOST_DEVICE, _FUNCTION_NAME.sub(rb"\1", compiled_match[1]), b"XlaLaunch")
    eager_match = _EAGER_OP.match(name)
    if eager_match:
        return None if eager_match[1] in _CALL_OPS else _Op(HOST_DEVICE, eager_match[1], eager_match[1], is_eager=True)
    return _Op(ITERATOR_DEVICE, name, ITERATOR_LABEL) if _ITERATOR.match(name) else None


class _Plane:
    """A plane with decoded names of events and stats."""

    def __init__(self, plane: Plane, session_ns: int, programs: Mapping[bytes, bytes] | None = None) -> None:
        self.name = plane.name
        self.programs = programs or {}
        self._plane = plane
        self._session_ns = session_ns
        self._event_names = {key: _EventName.from_metadata(value) for key, value in plane.event_metadata.items()}
        self._stat_names: dict[int, bytes] = {key: value.name for key, value in plane.stat_metadata.items()}
        self._instruction_stats = [key for key, name in self._stat_names.items() if name == _INSTRUCTION]

    @property
    def lines(self) -> Iterable[XLine]:
        """The lines; each access starts a new iteration."""
        return self._plane.lines

    def events(self, line: XLine, *, relevant_only: bool = False) -> list[_Event]:
        """Return the events of a line by start, enclosing events before nested ones.

        ``relevant_only`` skips events that are not relevant, and the stats of ops.
        """
        events = []
        line_ps = self._start_ps(line)
        for event in line.events:
            name = self._event_names.get(event.metadata_id, _NO_NAME)
            if name.is_relevant or not relevant_only or self.is_instruction(event):
                start_ps = line_ps + event.offset_ps
                end_ps = start_ps + max(0, event.duration_ps)
                # most events are ops: skip their stats
                stats = event.stats if name.op is None or not relevant_only else ()
                events.append(_Event(name.name, name.display_name, name.op, start_ps, end_ps, stats, name.stats))
        return sorted(events, key=lambda event: (event.start_ps, -event.end_ps))

    def is_instruction(self, event: XEvent | _Event) -> bool:
        """Whether an event is an execution of an HLO instruction."""
        return bool(self._instruction_stats) and any(
            stat.metadata_id in self._instruction_stats for stat in event.stats
        )

    def _start_ps(self, line: XLine) -> int:
        """Return the base of a line's event times (ps, real time).

        In some sessions the base is relative to the start of the session.
        """
        is_relative = line.timestamp_ns < self._session_ns // 2
        return (line.timestamp_ns + (self._session_ns if is_relative else 0)) * 1000

    def stats(self, event: _Event) -> Mapping[bytes, bytes | int]:
        """Return the stats of an event by name."""
        values: dict[bytes, bytes | int] = {}
        for stat in chain(event.shared_stats, event.stats):
            kind = stat.WhichOneof("value")
            if kind == "ref_value":
                values[self._stat_names.get(stat.metadata_id, b"")] = self._stat_names.get(stat.ref_value, b"")
            elif kind is not None and kind != "double_value":
                values[self._stat_names.get(stat.metadata_id, b"")] = getattr(stat, kind)
        return values

    def fraction(self, event: _Event, name: bytes) -> float:
        """Return a stat of an event that is a fraction of 1, 0 if the event has none."""
        values = (stat.double_value for stat in event.stats if self._stat_names.get(stat.metadata_id) == name)
        return next((value for value in values if 0 <= value <= 1), 0.0)


@dataclass(slots=True)
class _OtherEvents:
    """The events of asynchronous ops, of batches, of HLO instructions and of allocators.

    ``batches``: the batches that iterators returned, by step. ``instructions`` and ``memory``: each
    with its thread. ``ends_ps``: the ends of instructions, by id.
    """

    async_starts: dict[object, tuple[_Event, int]] = field(default_factory=dict)
    async_ends_ps: dict[object, int] = field(default_factory=dict)
    batches: dict[object, list[_Batch]] = field(default_factory=dict)
    instructions: list[tuple[_Event, int]] = field(default_factory=list)
    ends_ps: dict[object, int] = field(default_factory=dict)
    memory: list[tuple[_Event, int]] = field(default_factory=list)

    def add(self, plane: _Plane, event: _Event, thread: int) -> None:
        """Add ``event`` if it is of one of these types."""
        if event.name in SIGNS:
            self.memory.append((event, thread))
        elif event.name == _ASYNC_START:
            self.async_starts[_link(plane.stats(event), b"_p")] = event, thread
        elif event.name == _ASYNC_DONE:
            self.async_ends_ps[_link(plane.stats(event), b"_c")] = event.start_ps
        elif event.name == _BATCH:
            stats = plane.stats(event)
            self.batches.setdefault(stats.get(b"id"), []).append(
                _Batch(number_in(stats, b"element_size"), event.end_ps)
            )
        elif event.name.startswith(_END):
            self.ends_ps[plane.stats(event).get(_END_ID)] = event.start_ps
        elif plane.is_instruction(event):
            self.instructions.append((event, thread))


def _host_ops(plane: _Plane, calls: Calls, memory: list[MemoryEvent]) -> Iterator[Execution]:
    # All ops are collected before one is yielded: a later XLine may show which thread made a call.
    ops: list[Execution] = []
    others = _OtherEvents()
    pipeline_threads = set()
    for line in plane.lines:
        calls.add_line(line.id)
        thread = line.id & 0xFFFFFFFF
        if is_of_pipeline(line):
            pipeline_threads.add(thread)
        events = plane.events(line, relevant_only=True)
        ops += _nested_ops(plane, events, line, calls)
        for event in events:
            others.add(plane, event, thread)

    def is_beside(call: int, thread: int) -> bool:
        """Return whether an op of ``call`` on ``thread`` is one of the input pipeline."""
        return calls.is_in_pipeline(call, on_data_thread=thread in pipeline_threads)

    memory += [_memory_event(plane, event, thread, is_beside) for event, thread in others.memory]
    if others.instructions:
        ops = [op for op in ops if op.label not in _RUNS_PROGRAM]  # they wait for the instructions
        ops += _instruction_ops(plane, others)
    elif plane.programs:
        ops += _program_ops(plane, others, [op for op in ops if not is_beside(op.call, op.thread)])
    ops = list(_with_parts(_asynchronous_ops(plane, others), ops))
    if calls.has_other_callers:
        ops = [op for op in _with_known_calls(plane, ops) if not calls.belongs_to_other_thread(op.call, op.start_ns)]
    for op in ops:
        yield _of_pipeline(op) if op.device == HOST_DEVICE and is_beside(op.call, op.thread) else op


def _of_pipeline(op: Execution) -> Execution:
    """Return ``op`` with the device and the scope of the functions that tf.data calls."""
    return op._replace(device=PIPELINE_DEVICE, node=PIPELINE_SCOPE + op.node)


def _instruction_ops(plane: _Plane, events: _OtherEvents) -> Iterator[Execution]:
    """Yield the executions of HLO instructions, without those that only run others."""
    origins_of = cache(lambda program: compiled.origins(plane.programs.get(program, b"")))
    for event, thread in events.instructions:
        stats = plane.stats(event)
        instruction, module = stats.get(_INSTRUCTION), stats.get(_MODULE)
        if isinstance(instruction, bytes) and isinstance(module, bytes) and not compiled.runs_others(instruction):
            program = b"%s(%d)" % (module, number_in(stats, _NUMBER))
            node, label = compiled.node_and_label(instruction, origins_of(program))
            end_ps = max(event.end_ps, events.ends_ps.get(stats.get(_START_ID, _START_ID), 0))
            yield Execution(
                HOST_DEVICE,
                _INLINED.sub(b"", node, count=1),
                label,
                thread,
                event.start_ps // 1000,
                (end_ps - event.start_ps) // 1000,
                NO_MEMORY,
            )


def _program_ops(plane: _Plane, events: _OtherEvents, ops: Sequence[Execution]) -> Iterator[Execution]:
    """Yield the calls of functions during which no op began: XLA ran them.

    TensorFlow before 2.18 records no instructions on CPUs.
    """
    begins_ns = sorted(op.start_ns for op in ops if op.device == HOST_DEVICE)
    for link, (event, thread) in events.async_starts.items():
        stats = plane.stats(event)
        node, label = stats.get(b"name"), stats.get(b"kernel_type")
        start_ns, end_ns = event.start_ps // 1000, events.async_ends_ps.get(link, 0) // 1000
        has_ops = bisect_left(begins_ns, start_ns) < bisect_left(begins_ns, end_ns)
        if isinstance(node, bytes) and label in _CALL_OPS and end_ns and not has_ops:
            yield Execution(HOST_DEVICE, node, b"XlaLaunch", thread, start_ns, end_ns - start_ns, NO_MEMORY)


def _with_known_calls(plane: _Plane, ops: Sequence[Execution]) -> Iterator[Execution]:
    """Yield ``ops``; replace the call UNSEEN where the real one is known.

    The real call is that of the next PROPAGATE event on the op's thread, if there is one.
    """
    threads = {op.thread for op in ops if op.call == UNSEEN}
    executor_ends = {
        line.id & 0xFFFFFFFF: [
            (event.start_ps // 1000, call_id(plane.stats(event)))
            for event in plane.events(line)
            if event.name == PROPAGATE
        ]
        for line in plane.lines
        if line.id & 0xFFFFFFFF in threads
    }
    for op in ops:
        ends = executor_ends[op.thread] if op.call == UNSEEN else []
        index = bisect_right(ends, op.start_ns, key=lambda end: end[0])
        yield op._replace(call=ends[index][1]) if index < len(ends) else op


def _link(stats: Mapping[bytes, bytes | int], key: bytes) -> object:
    """Return the id that links the two halves of an asynchronous op."""
    return stats.get(key), stats.get(b"step_id"), stats.get(b"name")


def _asynchronous_ops(plane: _Plane, events: _OtherEvents) -> Iterator[Execution]:
    """Yield the asynchronous ops, which may end on another thread; unfinished ones are left out.

    Batches are ignored if a step has several.
    """
    for link, (event, thread) in events.async_starts.items():
        stats = plane.stats(event)
        node, label = stats.get(b"name"), stats.get(b"kernel_type")
        own_batches = events.batches.get(stats.get(b"step_id"), ()) if label == _ITERATOR_NEXT else ()
        batch = own_batches[0] if len(own_batches) == 1 else None
        # The event of an op's end lasts until TensorFlow has scheduled the next ops. It is missing
        # if the session ends before.
        end_ps = events.async_ends_ps.get(link, batch and batch.end_ps)
        if end_ps is not None and isinstance(node, bytes) and isinstance(label, bytes) and label not in _CALL_OPS:
            duration_ns = max(0, end_ps - event.start_ps) // 1000
            name = _INLINED.sub(b"", node, count=1)
            memory = OpMemory(output=batch.size) if batch else NO_MEMORY
            call = number_in(stats, b"step_id") & 0xFFFFFFFFFFFFFFFF
            yield Execution(HOST_DEVICE, name, label, thread, event.start_ps // 1000, duration_ns, memory, call)


def _with_parts(asynchronous_ops: Iterable[Execution], ops: Iterable[Execution]) -> Iterator[Execution]:
    """Yield all ops. Parts of asynchronous ops are not yielded; their memory is added to those ops.

    The dispatch of an asynchronous op has an event like that of any op. The work of a collective op
    on another thread has such an event, too. Both overlap with the asynchronous op.
    """
    wholes: dict[tuple[bytes, bytes], list[Execution]] = {}
    for op in sorted(asynchronous_ops, key=lambda op: op.start_ns):
        wholes.setdefault((op.node, op.label), []).append(op)
    last_ends = {node: list(accumulate(map(_end_ns, executions), max)) for node, executions in wholes.items()}
    for op in ops:
        executions = wholes.get((op.node, op.label), [])
        begun = bisect_right(executions, _end_ns(op), key=lambda whole: whole.start_ns)
        if not begun or last_ends[op.node, op.label][begun - 1] < op.start_ns:
            yield op
        elif executions[begun - 1].memory is NO_MEMORY:
            executions[begun - 1] = executions[begun - 1]._replace(memory=op.memory)
    yield from chain.from_iterable(wholes.values())


def _end_ns(op: Execution) -> int:
    return op.start_ns + op.own_ns


def _nested_ops(plane: _Plane, events: Iterable[_Event], line: XLine, calls: Calls) -> Iterator[Execution]:
    """Yield the ops of one thread, innermost first; add the thread's function calls to ``calls``.

    The time of an op excludes the ops nested in it.
    """
    thread = line.id & 0xFFFFFFFF
    open_ops: list[_OpenOp] = []
    #: Ends and calls of the active executors, innermost last.
    executors: list[tuple[int, int]] = [(_END_PS, UNSEEN if in_pool(line) else 0)]
    for event in events:
        while open_ops and open_ops[-1].end_ps <= event.start_ps:
            yield from _close_innermost(open_ops, thread)
        while executors[-1][0] <= event.start_ps:
            executors.pop()
        if event.op is not None:
            call = executors[-1][1]
            if call == UNSEEN and event.op.device == ITERATOR_DEVICE:
                call = 0  # iterators run outside of executors
            open_ops.append(_OpenOp(event.op, event.start_ps, event.end_ps, call))
        elif event.name == PROCESS:
            executors.append((event.end_ps, call_id(plane.stats(event))))
        elif event.name in CALL_EVENTS:
            calls.add_event(event.name, call_id(plane.stats(event)), line, event.start_ps, executors[-1][1])
        elif open_ops and event.name in _MEMORY_EVENTS:
            memory = open_ops[-1].memory = open_ops[-1].memory or OpMemory()
            _MEMORY_EVENTS[event.name](memory, plane.stats(event))
    while open_ops:
        yield from _close_innermost(open_ops, thread)


def _close_innermost(open_ops: list[_OpenOp], thread: int) -> Iterator[Execution]:
    """Close the innermost open op and yield it.

    An eager call is not yielded if its ops have events.
    """
    closed_op = open_ops.pop()
    device, node, label, is_eager = closed_op.op
    is_wrapper = is_eager and closed_op.inner_ops > 0
    duration_ps = closed_op.end_ps - closed_op.start_ps
    if open_ops:
        open_ops[-1].inner_ps += min(closed_op.inner_ps, duration_ps) if is_wrapper else duration_ps
        open_ops[-1].inner_ops += device == HOST_DEVICE
    if not is_wrapper:
        own_ns = max(0, duration_ps - closed_op.inner_ps) // 1000
        memory = closed_op.memory or NO_MEMORY
        yield Execution(device, node, label, thread, closed_op.start_ps // 1000, own_ns, memory, closed_op.call)


def _add_allocation(memory: OpMemory, stats: Mapping[bytes, bytes | int]) -> None:
    # An allocator that does not track the size of its blocks, such as the CPU's, reports 0 bytes.
    size = number_in(stats, b"allocation_bytes") or number_in(stats, b"requested_bytes")
    name = stats.get(b"allocator_name")
    if not memory.allocator and isinstance(name, bytes):
        memory.allocator = name
    address = number_in(stats, b"addr")
    memory.live += size - memory.block_sizes.get(address, 0)
    memory.block_sizes[address] = size
    memory.total += size
    memory.peak = max(memory.peak, memory.live)
    if b"GPU" in memory.allocator:
        memory.in_use = max(memory.in_use, number_in(stats, b"bytes_allocated"))


def _add_batch(memory: OpMemory, stats: Mapping[bytes, bytes | int]) -> None:
    memory.output += number_in(stats, b"element_size")


def _remove_allocation(memory: OpMemory, stats: Mapping[bytes, bytes | int]) -> None:
    memory.live -= memory.block_sizes.pop(number_in(stats, b"addr"), 0)


def _memory_event(plane: _Plane, event: _Event, thread: int, is_beside: Callable[[int, int], bool]) -> MemoryEvent:
    stats = plane.stats(event)
    op = stats.get(b"tf_op")
    node = _INLINED.sub(b"", op, count=1) if isinstance(op, bytes) else b""
    if node and is_beside(call_id(stats), thread):
        node = PIPELINE_SCOPE + node
    return memory_event(event.start_ps, event.name, node, stats, plane.fraction(event, FRAGMENTATION))


def _accelerator_ops(plane: _Plane, _calls: Calls, _memory: list[MemoryEvent]) -> Iterator[Execution]:
    """Yield the kernels and copies of a device.

    If the device has streams, the other lines are skipped: XLA derives them from the streams. A
    device without streams has its kernels in the line `XLA Ops`, beside the loops and branches that
    only run them.
    """
    device = plane.name + b"/stream:all"
    has_streams = any(line.name.startswith(b"Stream") for line in plane.lines)
    for line in plane.lines:
        if not (line.name.startswith(b"Stream") if has_streams else line.name == b"XLA Ops"):
            continue
        for event in plane.events(line):
            name = event.display_name or event.name
            if not has_streams and compiled.runs_others(name):
                continue
            tf_op = plane.stats(event).get(b"tf_op", b"")
            op_match = _OP.match(tf_op) if isinstance(tf_op, bytes) else None
            node = _INLINED.sub(b"", op_match[1], count=1) if op_match else name
            duration_ns = (event.end_ps - event.start_ps) // 1000
            yield Execution(
                device, node, event.name, line.id & 0xFFFFFFFF, event.start_ps // 1000, duration_ns, NO_MEMORY
            )


_OTHER_EVENTS: Final = CALL_EVENTS | {_ASYNC_START, _ASYNC_DONE}
_MEMORY_EVENTS: Final[dict[bytes, Callable[[OpMemory, Mapping[bytes, bytes | int]], None]]] = {
    b"MemoryAllocation": _add_allocation,
    b"MemoryDeallocation": _remove_allocation,
    _BATCH: _add_batch,
}
#: Reader of a plane, by the pattern of its name; other planes have no ops.
_READERS: Final = {_HOST_PLANE: _host_ops, _DEVICE_PLANE: _accelerator_ops}
