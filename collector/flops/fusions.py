"""Counts the operations of fused ops: the sum over the nodes of the graph that they replace."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from .definitions import Definition, InputSource, Outputs, is_fully_known
from .executed import LabelInfo, SampleExecution, parsed_label
from .flops import ELEMENT_WISE
from .kernels import FUSED_OPS
from .registry import size
from .shapes import Nodes, StepShapes

#: Ending of the name of a fused chain of element-wise ops, after the name of the chain's last op.
COMPOSED_SUFFIX: Final = "/unary_ops_composition"

_COMPOSITION: Final = "_UnaryOpsComposition"
_NORMALIZATION: Final = "FusedBatchNorm"
_NORMALIZATION_WITH_RELU: Final = "_FusedBatchNormEx"
_PADDED_CONVOLUTION: Final = "PadWithFusedConv2D"
#: Fused ops whose parts have outputs of different sizes.
_LAYERS: Final = frozenset({"LayerNorm", "FusedInstanceNorm"})
#: Fused ops whose parts are counted one by one.
_COUNTED_BY_PART: Final = (FUSED_OPS | _LAYERS | {_PADDED_CONVOLUTION, "Conv2DWithBias"}) - {"_FusedBatchNormGradEx"}
#: Number of inputs of the first op in a fused op; it is 2 in other fused ops.
_FIRST_OP_INPUTS: Final = {_NORMALIZATION_WITH_RELU: 5, _PADDED_CONVOLUTION: 3}
#: Ops that a fused op may replace. Ops of _MAIN_OPS do most of the work. The search for replaced
#: ops begins at the last of them, follows the inputs, and ends at an op of _MAIN_OPS.
_MAIN_OPS: Final = frozenset({"Conv2D", "Conv3D", "DepthwiseConv2dNative", "MatMul", "BatchMatMul", "BatchMatMulV2"})
_FUSIBLE_OPS: Final = _MAIN_OPS | {
    *("Add", "AddV2", "BiasAdd", "BiasAddV1", "Elu", "Erf", "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
    *("Erfc", "LeakyRelu", "Mul", "Neg", "Pow", "RealDiv", "Relu", "Relu6", "Sigmoid", "Softplus", "Sub", "Tanh"),
}
_FUSIBLE_OPS_IN_LAYERS: Final = (_FUSIBLE_OPS - _MAIN_OPS) | {
    *("Cast", "ExpandDims", "Identity", "Mean", "Neg", "Reshape", "Rsqrt", "Sqrt", "Square", "SquaredDifference"),
    *("Squeeze", "StopGradient", "Transpose"),
}
#: Ops that may run under the name of a node that was fused into another; they return their input.
_PASS_THROUGH_OPS: Final = frozenset({"Identity", "Squeeze"})

_Formula = Callable[[Definition, str, Outputs, Outputs], int | None]


class Fusions:
    """The counts of fused ops.

    Nodes of the graph that did not run are assumed to be fused into nodes that ran.
    """

    def __init__(
        self,
        nodes: Nodes,
        sample_executions: Mapping[str, SampleExecution],
        op_log: Mapping[str, int],
        formula: _Formula,
    ) -> None:
        self._nodes = nodes
        self._sample_executions = sample_executions
        self._op_log = op_log
        self._formula = formula

    def count(self, node: Definition, scope: str, info: LabelInfo, outputs: Outputs, shapes: StepShapes) -> int | None:
        """Return the count of ``node`` together with all nodes that were fused into it.

        ``scope``: prefix of the names in the node's function body; ``info`` and ``outputs``: the op
        that ran, and its output shapes. Return None if ``node`` is not fused, if the graph lacks
        the fused nodes, or if a necessary shape is unknown.
        """
        if info.op == _COMPOSITION:
            return self._composition(node, scope, outputs, shapes)
        if info.op not in _COUNTED_BY_PART or node.op == info.op:
            return None
        if node.op in _MAIN_OPS or node.op.startswith(_NORMALIZATION):
            return self._count_from_first(node, scope, info, outputs, shapes)
        return self._count_from_last(node, scope, info, outputs, shapes)

    def _count_from_first(
        self, node: Definition, scope: str, info: LabelInfo, outputs: Outputs, shapes: StepShapes
    ) -> int | None:
        """Return the count of a fused op that has the name of its first node.

        The other parts are element-wise ops on the outputs of this node.
        """
        number = self._count_part(node, shapes.inputs(node, info), outputs)
        if number is None or not outputs or not is_fully_known(outputs[0]):
            return None
        if info.inputs is None:
            element_wise_ops = len(list(self._parts_after(node, scope)))
        else:
            element_wise_ops = sum(not source.is_control for source in info.inputs) - _FIRST_OP_INPUTS.get(info.op, 2)
        if info.op == _NORMALIZATION_WITH_RELU:
            element_wise_ops = 1 + (
                element_wise_ops > 0 if info.inputs is not None else self._has_addition(node, scope)
            )
        return number + element_wise_ops * size(outputs[0] or ())

    def _has_addition(self, node: Definition, scope: str) -> bool:
        return any(part.op in {"Add", "AddV2"} for part in self._parts_after(node, scope))

    def _parts_after(self, node: Definition, scope: str) -> Iterator[Definition]:
        """Yield the nodes after ``node`` that may be fused into it.

        They did not run, or ran as an op that only returns its input.
        """
        seen_names: set[str] = set()
        pending = [node]
        while pending:
            for part in self._nodes.consumers.get((node.graph, pending.pop().name), ()):
                if part.name in seen_names or part.op not in _FUSIBLE_OPS | _PASS_THROUGH_OPS or part.op in _MAIN_OPS:
                    continue
                seen_names.add(part.name)
                execution = self._sample_executions.get(scope + part.name)
                info = None if execution is None else parsed_label(execution.label)
                if execution is None or (info is not None and info.op in _PASS_THROUGH_OPS):
                    pending.append(part)
                    if part.op not in _PASS_THROUGH_OPS:
                        yield part

    def _count_from_last(
        self, node: Definition, scope: str, info: LabelInfo, outputs: Outputs, shapes: StepShapes
    ) -> int | None:
        """Return the count of a fused op that has the name of its last node.

        Return None if no node was fused into the last one, or if the count of an op of _MAIN_OPS is
        unknown. Unless the fused op is in _LAYERS, also return None if neither an op of _MAIN_OPS
        nor a batch normalization was fused into it.
        """
        is_layer = info.op in _LAYERS
        parts = self._parts_before(node, scope, _FUSIBLE_OPS_IN_LAYERS if is_layer else _FUSIBLE_OPS)
        if not parts or not (
            is_layer or any(part.op in _MAIN_OPS or part.op.startswith(_NORMALIZATION) for part in parts)
        ):
            return None
        total = 0
        for part in (node, *parts):
            number = (
                self._count_with_own_shapes(part, shapes)
                if is_layer
                else self._count_with_output_shape(part, info, outputs, shapes)
            )
            if number is None and part.op in _MAIN_OPS:
                return None
            total += number or 0
        return total

    def _count_with_output_shape(
        self, part: Definition, info: LabelInfo, outputs: Outputs, shapes: StepShapes
    ) -> int | None:
        """Return the count of a part, assuming that its output has the fused op's output shape."""
        inputs = shapes.inputs(part, info) if part.op in _MAIN_OPS else outputs[:1] * len(part.inputs)
        return self._count_part(part, inputs, outputs)

    def _count_with_own_shapes(self, part: Definition, shapes: StepShapes) -> int | None:
        """Return the count of a part from its own shapes."""
        outputs = tuple(shapes.output(part.graph, InputSource(part.name, slot)) for slot in range(len(part.outputs)))
        return self._count_part(part, shapes.inputs(part), outputs)

    def _composition(self, node: Definition, scope: str, outputs: Outputs, shapes: StepShapes) -> int | None:
        """Return the count of the chain of element-wise ops that ends with ``node``."""
        if node.op not in ELEMENT_WISE:
            return None
        parts = self._parts_before(node, scope, ELEMENT_WISE)
        if len(outputs) != 1 or not is_fully_known(outputs[0]):
            outputs = (shapes.output(node.graph, InputSource(node.name, 0)),)
        numbers = [self._count_part(part, outputs, outputs) for part in (node, *parts)]
        return None if None in numbers else sum(number or 0 for number in numbers)

    def _count_part(self, part: Definition, inputs: Outputs, outputs: Outputs) -> int | None:
        return self._op_log.get(part.name) or self._formula(part, part.op, inputs, outputs)

    def _parts_before(self, node: Definition, scope: str, op_types: Collection[str]) -> list[Definition]:
        """Return the nodes of ``op_types`` before ``node`` that did not run."""
        parts: dict[str, Definition] = {}
        pending = [node]
        while pending:
            for part in self._sources(pending.pop()):
                if part.name not in parts and part.op in op_types and scope + part.name not in self._sample_executions:
                    parts[part.name] = part
                    if part.op not in _MAIN_OPS:
                        pending.append(part)
        return list(parts.values())

    def _sources(self, node: Definition) -> Iterable[Definition]:
        keys = ((node.graph, source.name) for source in node.inputs if not source.is_control)
        return [part for key in keys if (part := self._nodes.by_key.get(key)) is not None]
