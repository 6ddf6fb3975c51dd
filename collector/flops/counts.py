"""Counts the operations of a job's nodes, from traces or as TensorFlow's Python layer does."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..tfviews.parity import DEFAULT, Parity
from .definitions import Definition, InputSource, Outputs
from .executed import EquivalentSteps, LabelInfo, SampleExecution, parsed_label, recorded_shapes
from .flops import float_ops, formula
from .fusions import COMPOSED_SUFFIX, Fusions
from .kernels import op_type
from .registry import Dims
from .shapes import Nodes, StepShapes


@dataclass(frozen=True, slots=True)
class Count:
    """The operations of a node.

    ``per_execution``: those of one execution, the maximum if executions differ. ``total``: those of
    all executions if they differ, else None.
    """

    per_execution: int
    total: int | None = None


class OperationCounts(NamedTuple):
    """Operations by node, and the number of nodes without a count because a shape is unknown."""

    counts: Mapping[str, Count]
    unknown: int


class ExecutedNodes:
    """The nodes that ran in some traced steps, with a sample execution of each."""

    def __init__(self, nodes: Nodes, sample_executions: Mapping[str, SampleExecution], parity: Parity) -> None:
        self.nodes = nodes
        self.sample_executions = sample_executions
        self._parity = parity
        self._infos: dict[str, LabelInfo | None] = {}

    def info(self, name: str) -> LabelInfo | None:
        """Return op type and inputs of the execution ``name``; None if its op has no formula."""
        if name not in self._infos:
            info = parsed_label(self.sample_executions[name].label) if name in self.sample_executions else None
            candidates = self.nodes.candidates(name)
            op = info.op if info else candidates[0].op if candidates else ""
            has_formula = formula(op, self._parity) is not None
            self._infos[name] = LabelInfo(op_type(op), info.inputs if info else None) if has_formula else None
        return self._infos[name]


class OperationCounter:
    """Sums up the operations in traces."""

    def __init__(
        self, executed: ExecutedNodes, op_log: Mapping[str, int], varying_nodes: Iterable[str], parity: Parity = DEFAULT
    ) -> None:
        """Prepare to count the executions of the nodes in ``executed``.

        ``op_log``: the count of one execution by node; it takes precedence. ``varying_nodes``: the
        nodes whose executions are passed to `add`. For all other nodes, the sample execution is
        counted.
        """
        self._executed = executed
        self._nodes = executed.nodes
        self._op_log = op_log
        self._varying_nodes = frozenset(varying_nodes)
        self._parity = parity
        self._totals: dict[str, int] = {}
        self._counts_per_execution: dict[str, set[int]] = {}
        self._unknown: set[str] = set()
        self._formula_results: dict[Any, int | None] = {}
        self._fusions = Fusions(executed.nodes, executed.sample_executions, op_log, self._formula)

    def add(self, steps: EquivalentSteps, shapes: StepShapes) -> None:
        """Add the operations of the traces of ``steps``."""
        for name, signature, _, runs in steps.rows:
            if not self._op_log.get(name) and self._executed.info(name) is not None:
                executions = self._separate_executions(name, signature, runs, steps, shapes)
                for execution_shapes, times in [(shapes, runs)] if executions is None else executions:
                    number = self._zero_if_unknown(name, self._execution_operations(name, signature, execution_shapes))
                    self._counts_per_execution.setdefault(name, set()).add(number)
                    self._totals[name] = self._totals.get(name, 0) + number * times * steps.trace_count

    def _separate_executions(
        self, name: str, signature: bytes, runs: int, steps: EquivalentSteps, shapes: StepShapes
    ) -> list[tuple[StepShapes, int]] | None:
        """Return (shapes, 1) for each execution with ``signature``.

        Return None if the shapes do not differ between executions.
        """
        info = self._executed.info(name)
        if not any(
            shapes.varies_by_iteration(node, info) for node in shapes.candidates(name) or [Definition(-1, name, "", {})]
        ):
            return None
        order = steps.loop_signatures.get(name, (signature,) * runs)
        return [
            (shapes.for_execution(execution, len(order)), 1)
            for execution, execution_signature in enumerate(order)
            if execution_signature == signature
        ]

    def count(self) -> OperationCounts:
        """Return the counts of the nodes with operations."""
        counts = {
            name: Count(number)
            for name, number in self._op_log.items()
            if number and name in self._executed.sample_executions
        }
        for name, total in self._totals.items():
            per_execution = self._counts_per_execution[name]
            counts[name] = Count(max(per_execution), None if len(per_execution) == 1 else total)
        static_shapes = StepShapes(self._nodes, ())
        for name, execution in self._executed.sample_executions.items():
            if name not in self._varying_nodes and name not in counts and self._executed.info(name) is not None:
                counts[name] = Count(
                    self._zero_if_unknown(name, self._execution_operations(name, execution.signature, static_shapes))
                )
        return OperationCounts(
            {name: count for name, count in counts.items() if count.per_execution}, len(self._unknown)
        )

    def _zero_if_unknown(self, name: str, number: int | None) -> int:
        """Return ``number``; if it is None, return 0 and count ``name`` as unknown."""
        if number is None:
            self._unknown.add(name)
        return number or 0

    def _execution_operations(self, name: str, signature: bytes, shapes: StepShapes) -> int | None:
        """Return the operations of one execution called ``name``; None if a shape is unknown."""
        info = self._executed.info(name)
        if info is None:
            return None
        output_shapes = recorded_shapes(signature)
        candidates = shapes.candidates(name.removesuffix(COMPOSED_SUFFIX)) or self._nodes.replaced_by(name, info.op)
        for node in candidates or [Definition(-1, name, info.op, {})]:
            outputs = tuple(
                shapes.output(node.graph, InputSource(node.name, slot)) if dims is None else dims
                for slot, dims in enumerate(output_shapes or (None,) * len(node.outputs))
            )
            number = self._node_operations(node, name, info, outputs, shapes)
            if number is not None:
                return number
        return None

    def _node_operations(
        self, node: Definition, name: str, info: LabelInfo, outputs: Outputs, shapes: StepShapes
    ) -> int | None:
        scope = name.removesuffix(COMPOSED_SUFFIX).removesuffix(node.name)
        count = self._fusions.count(node, scope, info, outputs, shapes)
        if count is not None:
            return count
        number = self._formula(node, info.op, shapes.inputs(node, info), outputs)
        if number is None and info.op == node.op and info.inputs is not None:  # an optimizer may have set these inputs
            return self._formula(node, info.op, shapes.inputs(node), outputs)
        return number

    def _formula(self, node: Definition, op: str, inputs: Outputs, outputs: Outputs) -> int | None:
        key = (node.graph, node.name, op, inputs, outputs)
        if key not in self._formula_results:
            self._formula_results[key] = float_ops(op, node.attrs, inputs, outputs, self._parity)
        return self._formula_results[key]


# -- as TensorFlow's Python layer counts -----------------------------------------------------------


def registry_counts(nodes: Nodes, outputs: Mapping[str, Outputs], parity: Parity) -> dict[str, Count]:
    """Return the operations of one execution of each node for which there is a formula.

    ``outputs``: shapes by node, as TensorFlow's Python layer knows them. If several nodes have one
    name, the first is used.
    """

    def shape_of(source: InputSource) -> Dims | None:
        shapes = outputs.get(source.name, ())
        return shapes[source.slot] if source.slot < len(shapes) else None

    counts = {}
    for name, (node, *_) in nodes.by_name.items():
        if formula(node.op, parity):
            number = float_ops(node.op, node.attrs, tuple(map(shape_of, node.inputs)), outputs[name], parity)
            if number:
                counts[name] = Count(number)
    return counts
