"""Reads what a job's ops and its process hold in memory."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import Final, NamedTuple

import pyarrow as pa

from ...formats import layout, span_kinds
from ..advice import memory as growth_checker
from ..advice import missing_data
from ..advice.evidence import Evidence
from ..decoders.proto import graph_pb2
from ..flops.attributes import attributes
from ..growth import steady_growth
from ..store.catalog import IMPORTED
from ..store.columns import pc, row_tuples
from ..store.protocols import JobReader
from ..store.schema import ALLOCATOR, DEVICE, NODE, OUTPUT_BLOCK, PERSISTENT_BLOCK, TEMPORARY_BLOCK
from ..store.sql_queries import kept_memory, memory_levels
from ..summaries.jobs import functions_of
from ..summaries.kinds import kind_name, step_kind_of
from ..summaries.memory import (
    BEFORE,
    OUTPUT,
    PERSISTENT,
    TEMPORARY,
    AllocatorMemory,
    Finding,
    HeldGrowth,
    HostMemory,
    MemoryUse,
    Named,
    holders_of,
)
from ..tfviews.nodes import Node, interned_texts
from ..tfviews.places import Places
from .evidence import gather
from .explanations import untraced_reason
from .memory_blocks import Block, Memory, host_devices, memories, peak

_USES: Final = {OUTPUT_BLOCK: OUTPUT, TEMPORARY_BLOCK: TEMPORARY, PERSISTENT_BLOCK: PERSISTENT}
#: oneDNN's allocator reports only blocks of this size or more to profiler sessions.
_ONEDNN, _ONEDNN_MIN = "mklcpu", 1 << 18
#: Minimum growth that is shown: that of the memory which an allocator holds before a step, from the
#: first to the last traced step.
_HELD_MIN: Final = 1e6
_KEPT_MAX: Final = 3
_KEPT_SHARE_MIN: Final = 0.1
_VARIABLE_OPS: Final = frozenset({"VarHandleOp", "Variable", "VariableV2"})
#: Bytes of an element by number of its data type; 4 for all others.
_ELEMENT_BYTES: Final = {2: 8, 4: 1, 5: 2, 6: 1, 8: 8, 9: 8, 10: 1, 14: 2, 17: 2, 18: 16, 19: 2, 23: 8}
_NO_RECORDS: Final = "no peak: TensorFlow recorded no allocation in the traced steps, or an earlier tfprof stored them"
_IMPORTED: Final = "no peak: the imported files do not say when memory was allocated and freed"


class JobMemory(NamedTuple):
    """A job and its memory."""

    job: JobReader
    use: MemoryUse


def job_memory(job: JobReader) -> JobMemory:
    """Return the memory of ``job``; one snapshot of the job is read."""
    return job.on_one_snapshot(lambda snapshot: JobMemory(job, _memory_use(snapshot)))


def _memory_use(job: JobReader) -> MemoryUse:
    evidence = gather(job)
    allocators = tuple(_allocators(job, evidence.nodes))
    findings = tuple(
        Finding(report.text, report.numbers, report.remedy, report.line) for report in growth_checker.check(evidence)
    )
    no_peak = "" if allocators else _reason(job, evidence)
    host = _host_memory(job, allocators, evidence)
    return MemoryUse(allocators, no_peak, findings, missing_data.of_memory(evidence), host)


def _reason(job: JobReader, evidence: Evidence) -> str:
    if not evidence.has_steps:
        return f"no peak: {untraced_reason(job)}"
    return _IMPORTED if job.info.state == IMPORTED else _NO_RECORDS


class _Level(NamedTuple):
    """The peak of an allocator in a trace."""

    trace: int
    peak: int
    before: int


def _allocators(job: JobReader, nodes: Sequence[Node]) -> Iterator[AllocatorMemory]:
    """Yield the memory of each allocator, the highest peak first."""
    reader = _Reader(job, nodes)
    levels: dict[tuple[int, int], list[_Level]] = {}
    for trace, device, allocator, highest, before in job.with_sql(partial(memory_levels, hosts=reader.hosts)):
        if highest > 0:
            levels.setdefault((device, allocator), []).append(_Level(trace, highest, before))
    found = [reader.allocator(*key, of_key) for key, of_key in levels.items()]
    yield from sorted(filter(None, found), key=lambda memory: -memory.peak_bytes)


class _Reader:
    """Reads the blocks of the traces with the peaks."""

    def __init__(self, job: JobReader, nodes: Sequence[Node]) -> None:
        self._job = job
        self._functions = functions_of(job.info)
        self._places = Places(nodes)
        self._nodes = {node.name: node for node in nodes}
        names = job.table("names")
        self._names: dict[int, Mapping[int, str]] = {
            kind: interned_texts(names, kind) for kind in (NODE, DEVICE, ALLOCATOR)
        }
        #: GPU -> CPU of the same process
        self.hosts = host_devices(self._names[DEVICE])
        self._traces = job.table("traces")
        columns = ("trace", "kind", "key", "step", "start_ns", "source")
        #: trace -> its kind, step, start (real ns) and source
        self._steps: dict[int, tuple[int, int, int, int]] = {
            trace: (step_kind_of(kind, key), *rest) for trace, kind, key, *rest in row_tuples(self._traces, *columns)
        }
        self._memories: dict[int, list[Memory]] = {}

    def allocator(self, device: int, allocator: int, levels: Sequence[_Level]) -> AllocatorMemory | None:
        """Return the memory of an allocator at its highest peak; None if the trace has vanished."""
        levels = [level for level in levels if level.trace in self._steps]
        top = max(levels, key=lambda level: level.peak, default=None)
        if top is None:
            return None
        kind, step, start_ns, source = self._steps[top.trace]
        name = self._names[ALLOCATOR].get(allocator, "")
        memory = self._memory(top.trace, kind, device, name)
        if memory is None:
            return None
        highest = peak(memory.blocks)
        own = sum(block.bytes for block in highest.holders)
        of_kind = [level for level in levels if self._steps[level.trace][0] == kind]
        peaks = [level.peak for level in of_kind]
        has_level = memory.before_bytes is not None
        return AllocatorMemory(
            device=memory.device,
            allocator=memory.allocator,
            kind=kind_name(kind, self._functions),
            step=step,
            at_ns=highest.time_ns,
            after_ns=max(0, highest.time_ns - start_ns),
            peak_bytes=top.peak,
            steps=len(of_kind),
            peaks=(min(peaks), max(peaks)),
            holders=holders_of(map(self._holder, highest.holders)),
            is_session=source == layout.XSPACE,
            before_bytes=top.peak - own if has_level else None,
            fragmentation=_at(memory.fragmentation, highest.time_ns),
            block_min=_ONEDNN_MIN if has_level and memory.allocator == _ONEDNN else 0,
            growth=self._growth(of_kind, allocator) if has_level else None,
        )

    def _memory(self, trace: int, kind: int, device: int, allocator: str) -> Memory | None:
        if trace not in self._memories:
            rows = self._traces.filter(pc.equal(self._traces["trace"], pa.scalar(trace, pa.uint32())))
            self._memories[trace] = memories(self._job, rows, (kind,))
        of_device = [memory for memory in self._memories[trace] if memory.is_recorded and memory.number == device]
        return next((memory for memory in of_device if memory.allocator == allocator or not allocator), None)

    def _holder(self, block: Block) -> tuple[str, str, str, str, int]:
        node = self._nodes.get(block.node)
        line = self._places.location(node) if node is not None else ""
        return block.node, block.op, _USES.get(block.use, BEFORE if not block.node else OUTPUT), line, block.bytes

    def _growth(self, levels: Sequence[_Level], allocator: int) -> HeldGrowth | None:
        """Return the growth of the memory in use before a step; None if it is not steady."""
        by_step = sorted((self._steps[level.trace][1], level) for level in levels)
        by_step = by_step[int(len(by_step) * growth_checker.WARM_UP_SHARE) :]
        if len(by_step) < growth_checker.STEPS_MIN:
            return None
        trend = steady_growth([level.before for _, level in by_step])
        if trend is None or trend.increase < _HELD_MIN:
            return None
        (first_step, first), (last_step, last) = by_step[0], by_step[-1]
        growth = HeldGrowth(first_step, last_step, first.before, last.before)
        traces = [level.trace for _, level in by_step]
        query = partial(kept_memory, traces=traces, allocator=allocator)
        kept = (
            Named(self._names[NODE].get(node, ""), left / len(traces))
            for node, left in self._job.with_sql(query)[:_KEPT_MAX]
        )
        least = _KEPT_SHARE_MIN * growth.step_bytes
        return growth._replace(kept=tuple(named for named in kept if named.bytes >= least))


def _at(levels: Sequence[tuple[int, float]], time_ns: int) -> float | None:
    """Return the last of ``levels`` up to ``time_ns``, None if there is none."""
    return next((level for at_ns, level in reversed(levels) if at_ns <= time_ns), None)


def _host_memory(job: JobReader, allocators: Sequence[AllocatorMemory], evidence: Evidence) -> HostMemory | None:
    rows = sorted(row for row in row_tuples(job.table("samples"), "t_ns", "rss_bytes", "processes") if row[1])
    if not rows:
        return None
    spans = job.table("spans", ["kind", "start_ns"])
    steps = [start for kind, start in row_tuples(spans) if span_kinds.is_step(kind)]
    before = [rss for t_ns, rss, _ in rows if steps and t_ns < min(steps)]
    on_host = next((memory for memory in allocators if memory.device.startswith("CPU")), None)
    at_peak = min(rows, key=lambda row: abs(row[0] - on_host.at_ns)) if on_host else None
    return HostMemory(
        samples=len(rows),
        most_bytes=max(rss for _, rss, _ in rows),
        last_bytes=rows[-1][1],
        before_bytes=before[-1] if before else None,
        peak_bytes=at_peak[1] if at_peak else None,
        processes=at_peak[2] if at_peak else rows[-1][2],
        known=tuple(_known(on_host, evidence.nodes)) if on_host else (),
    )


def _known(memory: AllocatorMemory, nodes: Sequence[Node]) -> Iterator[Named]:
    """Yield what is known of the memory of the process at the peak of ``memory``."""
    yield Named(f"on {memory.place}", memory.peak_bytes)
    if memory.before_bytes is None:
        yield from _variables(nodes)


def _variables(nodes: Sequence[Node]) -> Iterator[Named]:
    """Yield the variables on CPUs: their number as a name, and the bytes of their values."""
    variables = [
        node for node in nodes if node.op in _VARIABLE_OPS and not any("gpu" in device for device in node.devices)
    ]
    shapes = [(node, attributes(node.facts.node_def).parameter_shape) for node in variables]
    sizes = [prod(shape) * _element_bytes(node.facts.node_def) for node, shape in shapes if min(shape, default=0) > 0]
    if sizes:
        yield Named(f"values of {len(sizes)} variable{'s' * (len(sizes) > 1)}", sum(sizes))


def _element_bytes(node_def: bytes) -> int:
    attribute = graph_pb2.NodeDef.FromString(node_def).attr.get("dtype")
    return _ELEMENT_BYTES.get(attribute.type, 4) if attribute is not None else 4
