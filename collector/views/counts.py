"""Operation counts of a job's nodes: by what traces recorded of them, or as TensorFlow's Python layer counts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tfprof.collector.views.definitions import Definition, Outputs, Source
from tfprof.collector.views.executed import Alike, Said, Sample, ran, recorded
from tfprof.collector.views.flops import float_ops, formula
from tfprof.collector.views.kernels import op_type
from tfprof.collector.views.registry import Dims
from tfprof.collector.views.rules import DEFAULT, Rules
from tfprof.collector.views.shapes import Nodes, StepShapes

_FUSED: Final = "_Fused"
_NORMALIZATION: Final = "FusedBatchNorm"
#: Ops that a library fuses into the node that ends them, going from there to the inputs until one that is the bulk.
_BULK: Final = frozenset({"Conv2D", "Conv3D", "DepthwiseConv2dNative", "MatMul", "BatchMatMul", "BatchMatMulV2"})
_ABSORBED: Final = _BULK | {
    *("Add", "AddV2", "BiasAdd", "BiasAddV1", "Elu", "Erf", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
    *("LeakyRelu", "Mul", "Pow", "RealDiv", "Relu", "Relu6", "Sigmoid", "Softplus", "Sub", "Tanh"),
}


@dataclass(frozen=True, slots=True)
class Count:
    """Operations of one execution of a node, and of all of them if they differ."""

    one: int
    total: int | None = None


class Counted(NamedTuple):
    """Operations by node, and how many nodes ran whose operations could not be counted, for want of a shape."""

    counts: Mapping[str, Count]
    unknown: int


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
        self._unknown: set[str] = set()
        self._numbers: dict[Any, int | None] = {}

    def add(self, alike: Alike, shapes: StepShapes) -> None:
        """Count the operations of some traces."""
        for name, signature, _, runs in alike.rows:
            if not self._op_log.get(name) and self._ran.said(name) is not None:
                number = self._known(name, self._number(name, signature, shapes))
                self._ones.setdefault(name, set()).add(number)
                self._totals[name] = self._totals.get(name, 0) + number * runs * alike.traces

    def counted(self) -> Counted:
        """Return what was counted; nodes without formula, or without operations, are left out."""
        counts = {name: Count(number) for name, number in self._op_log.items() if number and name in self._ran.samples}
        for name, total in self._totals.items():
            ones = self._ones[name]
            counts[name] = Count(max(ones), None if len(ones) == 1 else total)
        still = StepShapes(self._nodes, ())
        for name, sample in self._ran.samples.items():
            if name not in self._varying and name not in counts and self._ran.said(name) is not None:
                counts[name] = Count(self._known(name, self._number(name, sample.signature, still)))
        return Counted({name: count for name, count in counts.items() if count.one}, len(self._unknown))

    def _known(self, name: str, number: int | None) -> int:
        """Return ``number``, 0 where it is not known, and remember that."""
        if number is None:
            self._unknown.add(name)
        return number or 0

    def _number(self, name: str, signature: bytes, shapes: StepShapes) -> int | None:
        """Return the operations of one execution of what ran as ``name``."""
        said = self._ran.said(name)
        if said is None:
            return None
        seen = recorded(signature)
        for node in shapes.named(name) or [Definition(-1, name, said.op, {})]:
            outputs = tuple(
                shapes.output(node.graph, Source(node.name, slot)) if dims is None else dims
                for slot, dims in enumerate(seen or (None,) * len(node.outputs))
            )
            number = self._of(node, name, said, outputs, shapes)
            if number is not None:
                return number
        return None

    def _of(self, node: Definition, name: str, said: Said, outputs: Outputs, shapes: StepShapes) -> int | None:
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

    def _fused(self, node: Definition, scope: str, said: Said, outputs: Outputs, shapes: StepShapes) -> int | None:
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
