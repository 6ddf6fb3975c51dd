"""The format `profile`: a folder with timelines, StepStats and summaries, a file for each step.

docs/exports.md describes the files, docs/profile_summary.schema.json the content of summary.json.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ...formats import layout
from ..errors import StoreError
from ..export.folders import Folder
from ..proto import tensorflow_pb2
from ..query.explanations import untraced_reason
from ..query.node_times import rank_ops
from ..store.columns import flat, integers, pc, row_tuples
from ..store.output_signatures import decode
from ..summaries.jobs import functions_of
from ..summaries.kinds import FUNCTION_PREFIX, kind_name, span_kind, step_kind_of
from ..summaries.top import short_device
from ..tfviews.encoding import valid_utf8
from ..traces.chosen import SLICES_MAX, JobTraces, chosen_traces
from ..traces.executions import Batch, batches
from ..traces.labels import Labels
from ..traces.model import OP
from ..traces.trace import Trace
from . import chrome
from .profile_summary import Summary, TracedStep
from .request import Request
from .step_stats import COLUMNS, Names, step_stats

SCHEMA_VERSION: Final = 1
_UNITS: Final = {"duration": "microseconds", "total_bytes": "bytes"}
#: Maximum characters of a model in the name of a file.
_MODEL_MAX: Final = 100
_UNSAFE: Final = re.compile(r"[^\w.+-]+", re.ASCII)


class _Step(NamedTuple):
    """A traced step: the model that it belongs to, its kind and number, and its traces."""

    model: str
    kind: int
    number: int
    traces: tuple[int, ...]

    @property
    def file(self) -> str:
        return f"{self.model}_step_{self.number}"


def folder(request: Request) -> Folder:
    """Return the folder.

    UsageError as in `chosen_traces`, StoreError ``no-data`` without traces.
    """
    selection = request.selection
    is_limited = selection.steps is None and not request.all_steps
    (chosen,) = chosen_traces(selection, SLICES_MAX if is_limited else None)
    if not chosen.traces.num_rows:
        raise StoreError(untraced_reason(chosen.job), slug="no-data")
    if chosen.left_out:
        steps = chosen.traces.num_rows
        request.notes.append(f"the last {steps} of {steps + chosen.left_out} traced steps; --steps all writes all")
    return Folder("", _Tree(request, chosen).files())


class _Tree:
    """The files of one job."""

    def __init__(self, request: Request, chosen: JobTraces) -> None:
        self._request, self._chosen = request, chosen
        self._job = chosen.job
        self._steps = list(_steps(chosen))
        self._functions = functions_of(chosen.job.info)
        self._durations: dict[int, int] = dict(row_tuples(chosen.traces, "trace", "duration_ns"))
        # These are read once: there may be thousands of steps.
        self._labels = Labels(self._job, chosen.traces)
        self._sources = dict(row_tuples(self._job.table("traces", ["trace", "source"]), "trace", "source"))
        self._memory = self._job.table("output_memory")

    def files(self) -> Iterator[tuple[str, Iterable[bytes]]]:
        """Yield name and content of each file."""
        for step in self._steps:
            yield f"timeline/{step.file}", self._timeline(step)
        for step in self._steps:
            yield f"step_stats/{step.file}", self._step_stats(step)
        yield "summary.json", self._summary_json()
        yield "summary.md", (text.encode() for text in self._summary().lines())

    def _timeline(self, step: _Step) -> Iterator[bytes]:
        selection = replace(self._request.selection, steps=(step.number, step.number), kinds=(step.kind,), since_ns=0)
        return chrome.trace_pieces(Trace(selection, labels=self._labels))

    def _traces(self, steps: Sequence[_Step]) -> pa.Table:
        """Return the traces of ``steps``, those of a step one after another."""
        numbers = pa.array([trace for step in steps for trace in step.traces], pa.uint32())
        return self._chosen.traces.take(pc.index_in(numbers, value_set=flat(self._chosen.traces["trace"])))

    def _step_stats(self, step: _Step) -> Iterator[bytes]:
        traces = self._traces([step])
        message = tensorflow_pb2.StepStats()
        for rows, names in batches(self._job, traces, self._chosen.devices, COLUMNS):
            texts = Names.of(names)
            for trace in integers(pc.unique(flat(rows["trace"]))):
                part = rows.filter(pc.equal(rows["trace"], pa.scalar(trace, pa.uint32())))
                sizes = _output_sizes(part, self._memory, trace)
                message.MergeFromString(step_stats(part, texts, self._sources.get(trace, layout.RUN_METADATA), sizes))
        yield message.SerializeToString()

    def _summary_json(self) -> Iterator[bytes]:
        head = {"schema_version": SCHEMA_VERSION, "unit": _UNITS, "app_stats": self._app_stats()}
        yield _dumped(head)[:-1] + b',"op_stats":{'
        models = dict.fromkeys(step.model for step in self._steps)
        for position, model in enumerate(models):
            yield b"%b%b:{" % (b"," * bool(position), _dumped(model))
            yield from self._model_stats([step for step in self._steps if step.model == model])
            yield b"}"
        yield b"}}\n"

    def _app_stats(self) -> dict[str, dict[str, Any]]:
        """Return the activities of each step: its own time, by the name of its kind."""
        stats: dict[str, dict[str, Any]] = {}
        for kind, number, ns in self._timed():
            stats.setdefault(str(number), {})[valid_utf8(kind)] = {"duration": ns / 1000, "meta": {"traced": True}}
        return stats

    def _timed(self) -> list[TracedStep]:
        return [
            TracedStep(
                kind_name(step.kind, self._functions),
                step.number,
                sum(self._durations[trace] for trace in step.traces),
            )
            for step in self._steps
        ]

    def _summary(self) -> Summary:
        selection = self._request.selection
        kinds = tuple(dict.fromkeys(step.kind for step in self._steps))
        since_ns = pc.min(self._chosen.traces["start_ns"]).as_py()
        ranking = rank_ops(self._job, selection.steps, kinds, selection.device, since_ns)
        return Summary(self._job, self._timed(), ranking.ops if ranking else [])

    def _model_stats(self, steps: Sequence[_Step]) -> Iterator[bytes]:
        traces = self._traces(steps)
        step_of = {trace: step for step in steps for trace in step.traces}
        host = valid_utf8(self._job.info.host) or "localhost"
        comma = b""
        pending: dict[int, _StepOps] = {}  # by number, in the order of the steps
        for batch in batches(self._job, traces, self._chosen.devices, ("outputs",)):
            self._add(batch, step_of, pending)
            if not pending:
                continue
            *complete, last = pending.values()
            pending = {last.step.number: last}  # the next batch may have another trace of the same step
            for step_ops in complete:
                yield comma + step_ops.dump(host)
                comma = b","
        for step_ops in pending.values():
            yield comma + step_ops.dump(host)

    def _add(self, batch: Batch, step_of: Mapping[int, _Step], ops: dict[int, "_StepOps"]) -> None:
        """Add the executions of a batch to ``ops``."""
        rows, names = batch
        texts = Names.of(names)
        present = set(integers(pc.unique(flat(rows["trace"]))))
        for trace, step in step_of.items():
            if trace in present:
                ops.setdefault(step.number, _StepOps(step))
        columns = (integers(rows[name]) for name in ("trace", "device", "duration_ns", "requested_bytes", "outputs"))
        executions = zip(integers(self._labels.of_executions(rows, names)), *columns, strict=True)
        for number, trace, device, ns, size, outputs in executions:
            label = self._labels.all[number]
            if label.category == OP:
                name = short_device(texts.devices.get(device, ""))
                signature = texts.signatures.get(outputs)
                ops[step_of[trace].number].add(name, label.node, label.op, ns, size, signature)


@dataclass(slots=True)
class _StepOps:
    """The nodes of one step by device."""

    step: _Step
    devices: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    def add(self, device: str, node: str, op: str, ns: int, size: int, signature: bytes | None) -> None:
        """Add one execution."""
        nodes = self.devices.setdefault(device, {})
        name = valid_utf8(node)
        entry = nodes.get(name)
        if entry is None:
            entry = nodes[name] = {"duration": 0, "output": {}, "total_bytes": 0, "op": valid_utf8(op), "count": 0}
        entry["duration"] += ns
        entry["total_bytes"] += size
        entry["count"] += 1
        if signature is not None:
            entry["output"] = _outputs(signature)

    def dump(self, host: str) -> bytes:
        """Return the entry of the step as JSON, with times in µs."""
        for nodes in self.devices.values():
            for entry in nodes.values():
                entry["duration"] /= 1000
        return b"%b:%b" % (_dumped(str(self.step.number)), _dumped({host: self.devices}))


def _outputs(signature: bytes) -> dict[str, Any]:
    """Return shape and type of each slot.

    An unknown shape is None, an unknown size -1.
    """
    outputs: dict[str, Any] = {}
    for output in decode(signature):
        if not output.described:
            continue
        shape = None
        if output.shape is not None:
            message = tensorflow_pb2.TensorShapeProto.FromString(output.shape)
            shape = None if message.unknown_rank else [dimension.size for dimension in message.dim]
        outputs[str(output.slot)] = {"shape": shape, "type": _type_name(output.dtype)}
    return outputs


def _type_name(dtype: int) -> str:
    names: Mapping[int, Any] = tensorflow_pb2.DataType.DESCRIPTOR.values_by_number
    return str(names[dtype].name).removeprefix("DT_").capitalize() if dtype in names else str(dtype)


def _steps(chosen: JobTraces) -> Iterator[_Step]:
    """Yield the steps in order of time; traces of one step are combined."""
    functions = functions_of(chosen.job.info)
    rows = row_tuples(chosen.traces, "kind", "key", "step", "trace")
    traces: dict[tuple[int, int], list[int]] = {}
    for kind, key, number, trace in rows:
        traces.setdefault((step_kind_of(kind, key), number), []).append(trace)
    script = PurePath(chosen.job.info.name).stem
    several = len({kind for kind, _ in traces if span_kind(kind) != layout.FUNCTION}) > 1
    models: dict[int, str] = {}
    for kind, _ in traces:
        if kind not in models:
            name = kind_name(kind, functions)
            is_function = name.startswith(FUNCTION_PREFIX)
            model = name.removeprefix(FUNCTION_PREFIX) if is_function else f"{script}_{name}" if several else script
            models[kind] = _unused(_UNSAFE.sub("_", model)[:_MODEL_MAX].lstrip(".") or "model", models.values())
    for (kind, number), numbers in traces.items():
        yield _Step(models[kind], kind, number, tuple(numbers))


def _unused(name: str, used: Iterable[str]) -> str:
    """Return ``name``, with a number if another model has it."""
    names = set(used)
    candidates = [name, *(f"{name}.{number}" for number in range(2, len(names) + 2))]
    return next(candidate for candidate in candidates if candidate not in names)


def _output_sizes(rows: pa.Table, memory: pa.Table, trace: int) -> dict[tuple[int, int], tuple[int, int]]:
    """Return bytes and address by position in ``rows``, which are of one trace, and slot."""
    memory = memory.filter(pc.equal(memory["trace"], pa.scalar(trace, pa.uint32())))
    recorded: dict[tuple[int, int, int], dict[int, tuple[int, int]]] = {}
    for node, device, execution, slot, size, pointer in row_tuples(
        memory, "node", "device", "execution", "slot", "bytes", "ptr"
    ):
        recorded.setdefault((node, device, execution), {})[slot] = (size, pointer)
    sizes: dict[tuple[int, int], tuple[int, int]] = {}
    counts: dict[tuple[int, int], int] = {}
    for at, key in enumerate(row_tuples(rows, "node", "device")):
        execution = counts.get(key, 0)
        counts[key] = execution + 1
        for slot, value in recorded.get((*key, execution), {}).items():
            sizes[at, slot] = value
    return sizes


def _dumped(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
