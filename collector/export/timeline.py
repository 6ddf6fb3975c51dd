"""Timelines for chrome://tracing in the TF profiler's form.

A scope or code view becomes a flame graph. For a graph view, the executions of one step are drawn.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ..store.devices import can_be_canonical
from ..tfviews.encoding import octets
from ..tfviews.entries import Entry, Interval
from ..tfviews.nodes import Node, rounded_quotient
from ..tfviews.parity import DEFAULT, Parity
from ..tfviews.tree import Branch, TreeView
from .gpu_memory import HOLDERS_MAX, GpuMemory, MemoryHolder, Point
from .trace_events import TraceEvents

#: Size of a file, in bytes, above which a warning is printed.
LARGE_FILE_BYTES: Final = 200 << 20
LARGE_FILE_WARNING: Final = (
    "Trace file is over 200MB. Chrome might not be able to display it. "
    "Consider to use filters (e.g. -min_micros 1000 or -account_type_regexes .*gpu:0) to reduce the size."
)
#: The line printed before the timeline of a graph.
GENERATING_MESSAGE: Final = "generating trace file."
_SEPARATOR: Final = "*" * 54


@dataclass(frozen=True, slots=True)
class GraphTimeline:
    """The content of the file, and the peak of bytes in use by each GPU's allocator.

    ``hidden``: number of executions that are not drawn, since another one of their device starts in
    the same µs.
    """

    data: bytes
    peaks: tuple[tuple[str, int], ...]
    hidden: int = 0

    def messages(self) -> list[str]:
        """Return the lines that the TF profiler prints while it makes the timeline."""
        return [GENERATING_MESSAGE, *(f"{device} peak memory: {size / 1e6:.2f} MB" for device, size in self.peaks)]


def file_name(outfile: str, step: int) -> str:
    """Return the file name for the timeline of ``step``; -1 means the average of all steps."""
    return f"{outfile}_{step}"


def file_message(path: str) -> list[str]:
    """Return the lines of the TF profiler's message about a written file."""
    hint = "Open a Chrome browser, enter URL chrome://tracing and load the timeline file."
    return ["", _SEPARATOR, f"Timeline file is written to {path}.", hint, _SEPARATOR]


def scope_timeline(view: TreeView, time_unit: int = 1) -> bytes:
    """Return a scope or code view as a flame graph.

    Children are side by side below their parent, each as wide as its time. The graph starts at 0;
    positions are not points in time. Entries without time are left out. ``time_unit``: how many
    units of a time are a µs.
    """
    events = TraceEvents()
    named_depths = 0
    pending = [(view.root, 0, 0)]
    while pending:
        branch, start, depth = pending.pop()
        if depth == named_depths:
            events.process(depth, f"Scope:{depth}")
            named_depths += 1
        events.bar(branch.name, depth, 0, start, rounded_quotient(branch.total.micros, time_unit), args=("name", "op"))
        children = []
        for child in branch.children:
            width = rounded_quotient(child.total.micros, time_unit)
            if width > 0:
                children.append((child, start, depth + 1))
                start += width
        pending += reversed(children)
    return events.json()


def graph_timeline(
    view: TreeView, entries: Mapping[str, Entry], persistent_bytes: Mapping[str, int], parity: Parity = DEFAULT
) -> GraphTimeline:
    """Return a timeline of the executions of a graph view's shown nodes in one step.

    It shows devices with their lanes, flows between devices, and the memory of GPUs. ``entries``:
    entries of the step by node; ``persistent_bytes``: bytes that a node keeps on its GPU, the
    maximum of all steps.
    """
    drawing = _Drawing(entries)
    memory: dict[str, GpuMemory] = {}
    for node in _shown_nodes(view.root):
        entry = drawing.executed_entry(node.name)
        if entry is not None:
            drawing.add(node, entry)
            if "cpu" not in entry.device:
                memory.setdefault(entry.device, GpuMemory()).add(node.name, entry, persistent_bytes.get(node.name, 0))
    drawing.connect(view.accounted)
    events = TraceEvents()
    drawing.draw(events)
    pid = len(drawing.pids)
    for device in sorted(memory, key=octets):
        _draw_memory(events, pid, device, memory[device], parity)
        pid += 2
    peaks = tuple((device, memory[device].peak) for device in sorted(memory, key=octets))
    return GraphTimeline(events.json(), peaks, drawing.hidden)


def _shown_nodes(root: Branch) -> Iterator[Node]:
    """Yield the nodes of a graph view, parents first."""
    pending = list(reversed(root.children))
    while pending:
        branch = pending.pop()
        yield from branch.nodes
        pending.extend(reversed(branch.children))


@dataclass(slots=True, eq=False)
class _Bar:
    """One execution; `tid`: its lane; `consumers`: bars on other devices that use its output."""

    node: Node
    pid: int
    start: int
    duration: int
    tid: int = 0
    consumers: list["_Bar"] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.start + self.duration


class _Drawing:
    """The executions of a step by device and start.

    If several executions have the same device and start, only the first is drawn, as in the TF
    profiler. ``hidden`` is the number of executions that are not drawn.
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries
        self.pids: dict[str, int] = {}
        self.hidden = 0
        self._bars: dict[str, dict[int, _Bar]] = {}

    def executed_entry(self, name: str) -> Entry | None:
        """Return the entry of a node, None unless the node ran and has a canonical device."""
        entry = self._entries.get(name)
        return entry if entry is not None and entry.start_us and entry.device else None

    def add(self, node: Node, entry: Entry) -> None:
        """Add a bar for each execution of ``node``."""
        for device, pairs in entry.executions:
            pid = self.pids.setdefault(device, len(self.pids))
            bars = self._bars.setdefault(device, {})
            for start, duration in pairs:
                if start in bars:
                    self.hidden += 1
                else:
                    bars[start] = _Bar(node, pid, start, duration)

    def connect(self, accounted: frozenset[str]) -> None:
        """Find the data flows from one CPU or GPU to another that start at ``accounted`` nodes."""
        for device, bars in self._bars_by_device():
            if not can_be_canonical(octets(device)):
                continue
            for bar in bars:
                for name in bar.node.facts.inputs:
                    source = self.executed_entry(name) if name in accounted else None
                    if source is not None and source.device != device:
                        self._add_consumer(source.device, source.cpu.get(source.device, []), bar)

    def _add_consumer(self, device: str, pairs: list[Interval], consumer: _Bar) -> None:
        bars = self._bars.get(device, {})
        for start, _ in pairs:
            if start in bars:
                bars[start].consumers.append(consumer)

    def draw(self, events: TraceEvents) -> None:
        """Draw all bars, each in a free lane of its device, and the arrows between them."""
        for device, pid in self.pids.items():
            prefix = "Op execution threads: " if "stream" in device else "Op scheduling threads: "
            events.process(pid, prefix + device)
        bars = [bar for _, bars in self._bars_by_device() for bar in _with_lanes(bars)]
        number = 0
        for bar in sorted(bars, key=lambda bar: (bar.pid, bar.tid, bar.start)):
            name = bar.node.name
            events.bar(name, bar.pid, bar.tid, bar.start, bar.duration)
            for consumer in bar.consumers:
                number += 1
                target = (consumer.pid, consumer.tid, consumer.start)
                events.flow(f"{name}_flow", number, (bar.pid, bar.tid, bar.end), target)

    def _bars_by_device(self) -> list[tuple[str, list[_Bar]]]:
        """Return the devices in order of name, each with its bars in order of start."""
        devices = sorted(self._bars, key=octets)
        return [(device, [bar for _, bar in sorted(self._bars[device].items())]) for device in devices]


def _with_lanes(bars: list[_Bar]) -> list[_Bar]:
    """Assign each bar of a device to the first free lane; ``bars`` are sorted by start."""
    lanes: list[list[_Bar]] = []
    for bar in bars:
        bar.tid = next((number for number, lane in enumerate(lanes) if _is_free(lane, bar.start)), len(lanes))
        if bar.tid == len(lanes):
            lanes.append([])
        lanes[bar.tid].append(bar)
    return bars


def _is_free(lane: list[_Bar], start: int) -> bool:
    """Return whether a lane is free at ``start``.

    Bars that end exactly at ``start`` are ignored. The lane is free if the last of its other bars
    ends earlier, or if it has no other bar.
    """
    for bar in reversed(lane):
        if bar.end != start:
            return bar.end < start
    return True


def _draw_memory(events: TraceEvents, pid: int, device: str, memory: GpuMemory, parity: Parity) -> None:
    events.process(pid, f"mem usage on:{device}")
    events.process(pid + 1, f"mem usage on:{device} allocations")
    for point in memory.points():
        events.counter("Allocated Bytes", pid, point.time_us, {"Allocator Bytes in Use": point.bytes})
        events.counter("Top Allocations", pid + 1, point.time_us, _holder_args(point, parity))


def _holder_args(point: Point, parity: Parity) -> dict[str, int | str]:
    """Return the arguments of the counter of the largest holders at ``point``.

    Every point has the same names, but the name with number 00 is missing at a point without
    holders.
    """
    args: dict[str, int | str] = {f"Top Allocation {number:02d}": "N/A" for number in range(1, HOLDERS_MAX)}
    args |= {
        f"Top Allocation {number:02d}": _holder_text(holder, parity) for number, holder in enumerate(point.holders)
    }
    args["Not Displayed"] = f"{point.other_bytes / 1e6:.2f} MB"
    return args


def _holder_text(holder: MemoryHolder, parity: Parity) -> str:
    megabytes = holder.bytes / 1e6
    if parity.prints_all_digits:
        text = f"{megabytes:.15g}"
        text = text if float(text) == megabytes else f"{megabytes:.17g}"
    else:
        text = f"{megabytes:g}"
    return f"{text} MB from {holder.node}"
