"""Operation counts of a job's nodes: by what traces recorded of them, or as TensorFlow's Python layer counts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from tfprof.collector.views.dims import Evidence, OpenSizes, Solved
from tfprof.collector.views.flops import Dims, float_ops, formula
from tfprof.collector.views.kernels import op_type
from tfprof.collector.views.rules import DEFAULT, Rules
from tfprof.collector.views.shapes import (
    Definition,
    Outputs,
    Said,
    Source,
    agreed,
    complete,
    fed,
    inlined,
    ran,
    recorded,
)

_FUSED: Final = "_Fused"
_NORMALIZATION: Final = "FusedBatchNorm"
#: Ops that a library fuses into the node that ends them, going from there to the inputs until one that is the bulk.
_BULK: Final = frozenset({"Conv2D", "Conv3D", "DepthwiseConv2dNative", "MatMul", "BatchMatMul", "BatchMatMulV2"})
_ABSORBED: Final = _BULK | {
    *("Add", "AddV2", "BiasAdd", "BiasAddV1", "Elu", "Erf", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
    *("LeakyRelu", "Mul", "Pow", "RealDiv", "Relu", "Relu6", "Sigmoid", "Softplus", "Sub", "Tanh"),
}
#: Ops that hand out the batches of a data set, and the attribute that says of which types.
_ITERATORS: Final = {"IteratorGetNext": "output_types", "IteratorGetNextSync": "output_types"}
#: Bytes of an element, by number of a DataType; a reference is 100 more.
_WIDTHS: Final = {1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 8: 8, 9: 8, 10: 1, 14: 2, 17: 2, 18: 16, 19: 2, 22: 4, 23: 8}


class Sample(NamedTuple):
    """One execution of a node: its timeline label, its output signature, empty without."""

    label: str
    signature: bytes


class Row(NamedTuple):
    """Executions of one node in one trace that are alike."""

    node: str
    signature: bytes
    output_bytes: int
    count: int


class Alike(NamedTuple):
    """Traces in which the nodes that graphs leave open ran equally often, with the same outputs: ``rows``."""

    traces: int
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Count:
    """Operations of one execution of a node, and of all of them if they differ."""

    one: int
    total: int | None = None


class Nodes:
    """The nodes of a job's graphs: of the same name there may be some, in different graphs."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        """Take them in the order in which the job sent them."""
        self.all = definitions
        self.by_key: dict[tuple[int, str], Definition] = {}
        self.by_name: dict[str, list[Definition]] = {}
        for node in definitions:
            if self.by_key.setdefault((node.graph, node.name), node) is node:
                self.by_name.setdefault(node.name, []).append(node)

    def named(self, name: str) -> list[Definition]:
        """Return what may be meant by the name of something that ran: nodes, also of a function's body."""
        return self.by_name.get(name) or self.by_name.get(inlined(name)) or []

    def output(self, graph: int, source: Source) -> Dims | None:
        """Return the shape of an output as the graph has it."""
        node = self.by_key.get((graph, source.name))
        return node.outputs[source.slot] if node is not None and source.slot < len(node.outputs) else None

    @cached_property
    def open(self) -> OpenSizes:
        """What relates the sizes that the graphs leave open."""
        return OpenSizes(self.all)


def open_nodes(nodes: Nodes, ran_names: Iterable[str], rules: Rules = DEFAULT) -> list[str]:
    """Return which of the nodes that ran may have other shapes in every step, or make others' known."""
    return [name for name in ran_names if _is_open(nodes, name, rules)]


def sized_nodes(nodes: Nodes, names: Iterable[str]) -> list[str]:
    """Return which of ``names`` hand out batches: what their outputs take tells how large these were."""
    return [name for name in names if any(node.op in _ITERATORS for node in nodes.named(name))]


def _is_open(nodes: Nodes, name: str, rules: Rules) -> bool:
    known = nodes.named(name)
    if not known:
        return True
    for node in known:
        if not all(map(complete, node.outputs)):
            return True
        if formula(node.op, rules) and not all(
            source.control or complete(nodes.output(node.graph, source)) for source in node.inputs
        ):
            return True
    return False


# -- by what was recorded --------------------------------------------------------------------------


class Ran:
    """What ran in some traced steps: one execution of each node, and which nodes' shapes vary."""

    def __init__(self, nodes: Nodes, samples: Mapping[str, Sample], rules: Rules) -> None:
        self.nodes = nodes
        self.samples = samples
        self._rules = rules
        self._said: dict[str, Said | None] = {}

    def said(self, name: str) -> Said | None:
        """Return what ran as ``name``, with the op type that a kernel implements; None where there is no formula for it."""
        if name not in self._said:
            said = ran(self.samples[name].label) if name in self.samples else None
            known = self.nodes.named(name)
            op = said.op if said else known[0].op if known else ""
            counts = formula(op, self._rules) is not None
            self._said[name] = Said(op_type(op), said.inputs if said else None) if counts else None
        return self._said[name]


class Counting:
    """The fold of traces into counts of operations, and into the shapes that all of them agree on."""

    def __init__(self, ran: Ran, op_log: Mapping[str, int], varying: Iterable[str], rules: Rules = DEFAULT) -> None:
        """``op_log``: what was told of one execution, which goes first; ``varying``: nodes that the traces have rows of."""
        self._ran = ran
        self._nodes = ran.nodes
        self._op_log = op_log
        self._varying = frozenset(varying)
        self._rules = rules
        self._totals: dict[str, int] = {}
        self._ones: dict[str, set[int]] = {}
        self._numbers: dict[Any, int | None] = {}

    def add(self, alike: Alike, shapes: "StepShapes") -> None:
        """Count the operations of some traces."""
        for name, signature, _, count in alike.rows:
            if not self._op_log.get(name) and self._ran.said(name) is not None:
                number = self._number(name, signature, shapes) or 0
                self._ones.setdefault(name, set()).add(number)
                self._totals[name] = self._totals.get(name, 0) + number * count * alike.traces

    def counts(self) -> dict[str, Count]:
        """Return the operations of each node that ran; of one whose shapes are not known, or without formula, nothing."""
        counts = {name: Count(number) for name, number in self._op_log.items() if number and name in self._ran.samples}
        for name, total in self._totals.items():
            if total:
                ones = self._ones[name]
                counts[name] = Count(max(ones), None if len(ones) == 1 else total)
        still = StepShapes(self._nodes, ())
        for name, sample in self._ran.samples.items():
            if name not in self._varying and name not in counts and self._ran.said(name) is not None:
                number = self._number(name, sample.signature, still)
                if number:
                    counts[name] = Count(number)
        return counts

    def unknown(self, counts: Mapping[str, Count]) -> list[str]:
        """Return the nodes that ran, have a formula, and are not in ``counts``: for want of a shape, or without operations."""
        return [name for name in self._ran.samples if name not in counts and self._ran.said(name) is not None]

    def _number(self, name: str, signature: bytes, shapes: "StepShapes") -> int | None:
        """Return the operations of one execution of what ran as ``name``."""
        said = self._ran.said(name)
        if said is None:
            return None
        seen = recorded(signature)
        for node in self._nodes.named(name) or [Definition(-1, name, said.op, {})]:
            outputs = tuple(
                shapes.output(node.graph, Source(node.name, slot)) if dims is None else dims
                for slot, dims in enumerate(seen or (None,) * len(node.outputs))
            )
            number = self._of(node, name, said, outputs, shapes)
            if number is not None:
                return number
        return None

    def _of(self, node: Definition, name: str, said: Said, outputs: Outputs, shapes: "StepShapes") -> int | None:
        if said.op.startswith(_FUSED) and not node.op.startswith(_FUSED):
            fused = self._fused(node, name.removesuffix(node.name), said, outputs, shapes)
            if fused is not None:
                return fused
        return self._formula(node, said.op, shapes.inputs(node, said), outputs)

    def _formula(self, node: Definition, op: str, inputs: Outputs, outputs: Outputs) -> int | None:
        key = (node.graph, node.name, op, inputs, outputs)
        if key not in self._numbers:
            self._numbers[key] = float_ops(op, node.attrs, inputs, outputs, self._rules)
        return self._numbers[key]

    def _fused(self, node: Definition, scope: str, said: Said, outputs: Outputs, shapes: "StepShapes") -> int | None:
        """Return the count of the nodes that ran as one, all with the output of the last; None where none was absorbed."""
        parts = self._absorbed(node, scope)
        if not any(part.op in _BULK or part.op.startswith(_NORMALIZATION) for part in parts):
            return None
        total = 0
        for part in (node, *parts):
            inputs = shapes.inputs(part, said) if part.op in _BULK else outputs[:1] * len(part.inputs)
            number = self._op_log.get(part.name) or self._formula(part, part.op, inputs, outputs)
            if number is None and part.op in _BULK:
                return None
            total += number or 0
        return total

    def _absorbed(self, node: Definition, scope: str) -> list[Definition]:
        """Return the nodes before ``node`` that did not run by themselves; ``scope``: what precedes names in its body."""
        parts: dict[str, Definition] = {}
        ahead = [node]
        while ahead:
            for source in ahead.pop().inputs:
                part = self._nodes.by_key.get((node.graph, source.name))
                if part is None or source.control or part.name in parts or part.op not in _ABSORBED:
                    continue
                if scope + part.name not in self._ran.samples:
                    parts[part.name] = part
                    if part.op not in _BULK:
                        ahead.append(part)
        return list(parts.values())


class StepShapes:
    """The shapes of one traced step: as it recorded them, as the graph has them, else as follows from the others."""

    def __init__(self, nodes: Nodes, rows: Sequence[Row]) -> None:
        """Take what the step recorded of nodes that graphs leave open."""
        self._nodes = nodes
        self._rows = rows
        self._seen: dict[Source, Dims | None] = {}
        for row in rows:
            placeholder = fed(row.node)
            for slot, dims in enumerate(recorded(row.signature)):
                self._seen.setdefault(Source(row.node, slot), dims)
                if placeholder is not None and slot == 0:
                    self._seen.setdefault(placeholder, dims)

    def inputs(self, node: Definition, said: Said | None = None) -> Outputs:
        """Return the shapes of a node's inputs: of those that it ran on, where the step tells; control inputs are None."""
        sources = node.inputs if said is None or said.inputs is None else said.inputs
        return tuple(None if source.control else self.output(node.graph, source) for source in sources)

    def output(self, graph: int, source: Source) -> Dims | None:
        """Return the shape of a node's output, complete, or as far as it is known."""
        seen = self._seen.get(source)
        if seen is not None:
            return seen
        known = self._nodes.output(graph, source)
        return known if complete(known) else self._solved.shape(graph, source.name, source.slot)

    @cached_property
    def _solved(self) -> Solved:
        return self._nodes.open.solved(self._evidence())

    def _evidence(self) -> Iterator[Evidence]:
        for source, dims in self._seen.items():
            if dims is not None:
                yield Evidence(source.name, source.slot, dims)
        for row in self._rows:
            if row.output_bytes:
                for node in self._nodes.named(row.node):
                    yield from _batch(node, row.output_bytes)


def _batch(node: Definition, size: int) -> Iterable[Evidence]:
    """Yield the shapes of a batch of ``size`` bytes, of which the graph leaves none but the number of examples open."""
    if node.op not in _ITERATORS or _ITERATORS[node.op] not in node.attrs:
        return
    types = node.attrs[_ITERATORS[node.op]].list.type
    fixed = example = 0
    for kind, dims in zip(types, node.outputs, strict=False):
        if dims is None or kind not in _WIDTHS or min(dims[1:], default=0) < 0:
            return
        bytes_ = _WIDTHS[kind]
        for length in dims[1:]:
            bytes_ *= length
        if dims and dims[0] < 0:
            example += bytes_
        else:
            fixed += bytes_ * (dims[0] if dims else 1)
    if example and size > fixed and (size - fixed) % example == 0:
        batch = (size - fixed) // example
        for slot, dims in enumerate(node.outputs):
            if dims and dims[0] < 0:
                yield Evidence(node.name, slot, (batch, *dims[1:]))


class Agreed:
    """The fold of traces into the shapes of outputs that graphs leave open: sizes that differ between steps are -1."""

    def __init__(self, nodes: Nodes) -> None:
        self._wanted = {
            (node.graph, Source(source.name, source.slot))
            for node in nodes.all
            for source in node.inputs
            if not complete(nodes.output(node.graph, source))
        }
        self._shapes: dict[Source, dict[Dims, None]] = {}

    def add(self, shapes: StepShapes) -> None:
        """Take the shapes of a step."""
        for graph, source in self._wanted:
            dims = shapes.output(graph, source)
            if dims is not None:
                self._shapes.setdefault(source, {})[dims] = None

    def outputs(self) -> dict[Source, Dims]:
        """Return what all steps agree on."""
        found = {source: agreed(list(shapes)) for source, shapes in self._shapes.items()}
        return {source: dims for source, dims in found.items() if dims is not None}


# -- as TensorFlow's Python layer counts ------------------------------------------------------------


def registered(nodes: Nodes, outputs: Mapping[str, Outputs], rules: Rules) -> dict[str, Count]:
    """Return the operations of one execution of each node of a graph that TensorFlow's registry has a number for.

    ``outputs``: shapes by node, as far as its Python layer knows them; the first node of a name counts.
    """

    def of(source: Source) -> Dims | None:
        shapes = outputs.get(source.name, ())
        return shapes[source.slot] if source.slot < len(shapes) else None

    counts = {}
    for name, (node, *_) in nodes.by_name.items():
        if formula(node.op, rules):
            number = float_ops(node.op, node.attrs, tuple(map(of, node.inputs)), outputs[name], rules)
            if number:
                counts[name] = Count(number)
    return counts
