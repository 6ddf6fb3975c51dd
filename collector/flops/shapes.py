"""Shapes of outputs in traced steps: recorded, from the graph, or inferred.

`with_recorded_shapes` completes the shapes of a graph as TensorFlow's Python layer does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property
from typing import Final

from ..tfviews.nodes import Shape
from ..tfviews.parity import DEFAULT, Parity
from ..tfviews.places import original_name
from .batches import ITERATORS, BatchCandidate, batch_of_arguments, batch_of_iterator
from .call_graph import CallGraph
from .definitions import Definition, InputSource, Outputs, is_fully_known
from .executed import ExecutionRow, LabelInfo, fed_placeholder, original_names, shapes_by_slot, shapes_in_order
from .flops import OUTPUT_SIZE_OPS, formula
from .registry import Dims
from .shape_solver import InferredSizes, OpenSizes, RecordedShape

#: Two ops replace a batch normalization in inference: one keeps the name, the other gets this
#: ending.
_SCALING_SUFFIX: Final = "/Mul"
_NORMALIZATIONS: Final = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


class Nodes:
    """The nodes of a job's graphs; different graphs may have nodes of the same name."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        """Add nodes in the order in which the job sent them.

        If several nodes of a graph have one name, the first is used.
        """
        self.by_key: dict[tuple[int, str], Definition] = {}
        self.by_name: dict[str, list[Definition]] = {}
        for node in definitions:
            if self.by_key.setdefault((node.graph, node.name), node) is node:
                self.by_name.setdefault(node.name, []).append(node)

    def candidates(self, name: str) -> list[Definition]:
        """Return the nodes that an execution called ``name`` may belong to.

        If no node has this name, they are the nodes of function bodies that were inlined under this
        name.
        """
        return self.by_name.get(name) or self.by_name.get(original_name(name)) or []

    def replaced_by(self, name: str, op: str) -> list[Definition]:
        """Return the nodes that an optimizer replaced by node ``name``, which runs ``op``.

        A node is left out if the shapes of the replacement do not give its count. A node with the
        same op stays. If the count of ``op`` depends only on the output, all nodes stay. For the
        second op of a batch normalization in inference, the normalization is returned.
        """
        replaced_nodes = next(filter(None, (self.by_name.get(original) for original in original_names(name))), None)
        if replaced_nodes is None:
            return [
                node for node in self.by_name.get(name.removesuffix(_SCALING_SUFFIX), ()) if node.op in _NORMALIZATIONS
            ]
        return [node for node in replaced_nodes if op in OUTPUT_SIZE_OPS or node.op == op]

    def output(self, graph: int, source: InputSource) -> Dims | None:
        """Return the shape of an output according to the graph."""
        node = self.by_key.get((graph, source.name))
        return node.outputs[source.slot] if node is not None and source.slot < len(node.outputs) else None

    def shapes(self, node: Definition) -> tuple[Outputs, Outputs]:
        """Return the shapes of a node's data inputs and outputs according to the graph."""
        return tuple(self.output(node.graph, source) for source in node.inputs if not source.is_control), node.outputs

    def batches(self, name: str, size: int) -> list[BatchCandidate]:
        """Return candidates for a batch of ``size`` bytes.

        They are the outputs of the iterators called ``name``. If none of them fits and ``name`` is
        the op type of an iterator, the arguments of functions that no graph calls are candidates,
        too.
        """
        candidates = [batch_of_iterator(node, size) for node in self.by_name.get(name, ()) if node.op in ITERATORS]
        if any(batch.examples is not None for batch in candidates) or name not in ITERATORS:
            return candidates
        functions = ([self.by_key[key] for key in function] for function in self.calls.uncalled_functions())
        return [*candidates, *(batch_of_arguments(function, size) for function in functions)]

    @cached_property
    def consumers(self) -> Mapping[tuple[int, str], list[Definition]]:
        """The consumers of each node's data, by graph and name."""
        consumers: dict[tuple[int, str], list[Definition]] = {}
        for node in self.by_key.values():
            for name in {source.name for source in node.inputs if not source.is_control}:
                consumers.setdefault((node.graph, name), []).append(node)
        return consumers

    @cached_property
    def calls(self) -> CallGraph:
        """The calls between the graphs."""
        return CallGraph(self.by_key)

    @cached_property
    def open_sizes(self) -> OpenSizes:
        """The open sizes of the graphs and their constraints."""
        return OpenSizes(self.by_key, self.calls)


def open_nodes(nodes: Nodes, executed_names: Iterable[str], parity: Parity = DEFAULT) -> list[str]:
    """Return the executed nodes whose shapes may vary from step to step or affect such shapes."""
    return [name for name in executed_names if _is_open(nodes, name, parity)]


def batch_nodes(nodes: Nodes, names: Iterable[str]) -> list[str]:
    """Return the ``names`` of nodes whose outputs are batches.

    The bytes of these outputs determine the batch size.
    """
    return [name for name in names if name in ITERATORS or any(node.op in ITERATORS for node in nodes.candidates(name))]


def _is_open(nodes: Nodes, name: str, parity: Parity) -> bool:
    candidates = nodes.candidates(name)
    if not candidates:
        return True
    shapes = [nodes.shapes(node) for node in candidates]
    if not all(map(is_fully_known, shapes[0][1])):
        return True
    if formula(candidates[0].op, parity) is None and candidates[0].op not in ITERATORS:
        return False
    return not all(map(is_fully_known, shapes[0][0])) or any(other != shapes[0] for other in shapes[1:])


class StepShapes:
    """The shapes of one traced step: recorded, else from the graph, else inferred from others."""

    def __init__(
        self, nodes: Nodes, rows: Sequence[ExecutionRow], loop_signatures: Mapping[str, Sequence[bytes]] | None = None
    ) -> None:
        """Take the recorded shapes from ``rows``, the executions of nodes with open shapes.

        ``loop_signatures``: see EquivalentSteps.
        """
        self._nodes = nodes
        self.execution = -1, 0  # current execution, number of executions
        self._varying_shapes = _shapes_by_execution(loop_signatures or {})
        self._recorded_shapes: dict[InputSource, Dims | None] = {}
        for row in rows:
            placeholder = fed_placeholder(row.node)
            for slot, dims in shapes_by_slot(row.signature).items():
                self._recorded_shapes.setdefault(InputSource(row.node, slot), dims)
                if placeholder is not None and slot == 0:
                    self._recorded_shapes.setdefault(placeholder, dims)
        self._batches = [
            batch for row in rows if row.output_bytes for batch in nodes.batches(row.node, row.output_bytes)
        ]
        self._graphs_with_batch = nodes.calls.reachable(
            batch.graph for batch in self._batches if batch.examples is not None
        )

    def candidates(self, name: str) -> list[Definition]:
        """Return the nodes that an execution called ``name`` may belong to.

        If several nodes have the name, those in graphs that ran with the batch of this step are
        preferred: if there are any, only they are returned.
        """
        candidates = self._nodes.candidates(name)
        return (
            [node for node in candidates if node.graph in self._graphs_with_batch] or candidates
            if len(candidates) > 1
            else candidates
        )

    def varies_by_iteration(self, node: Definition, info: LabelInfo | None = None) -> bool:
        """Return whether the shapes of a node's inputs differ between iterations of a loop."""
        return bool(self._varying_shapes) and not self._varying_shapes.keys().isdisjoint(self._sources(node, info))

    def for_execution(self, execution: int, executions: int) -> "StepShapes":
        """Return the shapes for execution number ``execution`` of a node in a loop.

        A node with the same number of executions is assumed to run in the same iterations. For any
        other node, only the sizes that are equal in all of its executions are known.
        """
        shapes = copy(self)
        shapes.execution = execution, executions
        return shapes

    @staticmethod
    def _sources(node: Definition, info: LabelInfo | None) -> Sequence[InputSource]:
        return node.inputs if info is None or info.inputs is None else info.inputs

    def inputs(self, node: Definition, info: LabelInfo | None = None) -> Outputs:
        """Return the shapes of a node's data inputs.

        The inputs are those in ``info`` if it has any, else those in the graph.
        """
        sources = self._sources(node, info)
        return tuple(self.output(node.graph, source) for source in sources if not source.is_control)

    def output(self, graph: int, source: InputSource) -> Dims | None:
        """Return the shape of a node's output; unknown sizes are -1, None is an unknown rank."""
        execution_shapes = self._varying_shapes.get(source)
        if execution_shapes is not None:
            execution, count = self.execution
            return (
                execution_shapes[execution]
                if len(execution_shapes) == count
                else common_shape([dims for dims in execution_shapes if dims is not None])
            )
        recorded_dims = self._recorded_shapes.get(source)
        if recorded_dims is not None:
            return recorded_dims
        graph_dims = self._nodes.output(graph, source)
        return graph_dims if is_fully_known(graph_dims) else self._inferred_sizes.shape(graph, source.name, source.slot)

    @cached_property
    def _inferred_sizes(self) -> InferredSizes:
        examples = {batch.examples for batch in self._batches if batch.examples}
        return self._nodes.open_sizes.solve(self._recorded_outputs(), examples.pop() if len(examples) == 1 else 0)

    def _recorded_outputs(self) -> Iterator[RecordedShape]:
        for source, dims in self._recorded_shapes.items():
            if dims is not None and source not in self._varying_shapes:
                for node in self.candidates(source.name):
                    yield RecordedShape(node.graph, node.name, source.slot, dims)
        for batch in self._batches:
            if batch.examples is not None:
                for source, dims in batch.parts:
                    sizes = tuple(batch.examples if size < 0 else size for size in dims)
                    yield RecordedShape(batch.graph, source.name, source.slot, sizes)


def _shapes_by_execution(loop_signatures: Mapping[str, Sequence[bytes]]) -> dict[InputSource, Sequence[Dims | None]]:
    """Return the shapes of outputs that vary within one step, by output and execution."""
    shapes_by_output: dict[InputSource, list[Dims | None]] = {}
    for name, order in loop_signatures.items():
        for signature in order:
            for slot, dims in shapes_by_slot(signature).items():
                shapes_by_output.setdefault(InputSource(name, slot), []).append(dims)
    return {source: shapes for source, shapes in shapes_by_output.items() if len(set(shapes)) > 1}


class CommonShapes:
    """The shapes of outputs that graphs leave open; sizes that differ between steps are -1."""

    def __init__(self, nodes: Nodes) -> None:
        self._open_sources = {
            (node.graph, InputSource(source.name, source.slot))
            for node in nodes.by_key.values()
            for source in node.inputs
            if not is_fully_known(nodes.output(node.graph, source))
        }
        self._shapes: dict[InputSource, dict[Dims, None]] = {}

    def add(self, shapes: StepShapes) -> None:
        """Add the shapes of a step."""
        for graph, source in self._open_sources:
            dims = shapes.output(graph, source)
            if dims is not None:
                self._shapes.setdefault(source, {})[dims] = None

    def outputs(self) -> dict[InputSource, Dims]:
        """Return the shapes, with the sizes that are equal in all steps."""
        common = {source: common_shape(list(shapes)) for source, shapes in self._shapes.items()}
        return {source: dims for source, dims in common.items() if dims is not None}


def common_shape(shapes: Sequence[Dims]) -> Dims | None:
    """Return the common part of shapes: -1 for sizes that differ, None if ranks differ."""
    if not shapes or len({len(dims) for dims in shapes}) > 1:
        return None
    return tuple(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True))


def tf_profiler_shape(dims: Dims | None) -> Shape:
    """Return a shape in the form of the TF profiler: a scalar is (1,), an unknown rank ()."""
    return () if dims is None else dims or (1,)


# -- as TensorFlow's Python layer completes shapes -------------------------------------------------


def merge_shapes(known: Dims | None, other: Dims) -> Dims:
    """Merge two partly known shapes; ValueError if they contradict each other."""
    if known is None:
        return other
    if len(known) != len(other):
        raise ValueError
    return tuple(_merge_sizes(*pair) for pair in zip(known, other, strict=True))


def _merge_sizes(size: int, other_size: int) -> int:
    if -1 not in (size, other_size) and size != other_size:
        raise ValueError
    return max(size, other_size)


def with_recorded_shapes(
    graph: Mapping[str, Definition], signatures: Iterable[tuple[str, bytes]]
) -> dict[str, Outputs]:
    """Return the output shapes of a graph's nodes; partly known ones are merged with recorded ones.

    ``signatures``: (node, output signature) in the order of their first appearance. Merged shapes
    are not propagated to consumers. A known size is never changed.
    """
    outputs = {name: definition.outputs for name, definition in graph.items()}
    for name, signature in signatures:
        known_shapes, shapes = outputs.get(name, ()), shapes_in_order(signature)
        if not shapes or len(shapes) != len(known_shapes):
            continue
        completed_shapes = list(known_shapes)
        for slot, dims in enumerate(shapes):
            if not is_fully_known(known_shapes[slot]):
                with suppress(ValueError):  # a contradicting shape is ignored
                    completed_shapes[slot] = merge_shapes(known_shapes[slot], dims)
        outputs[name] = tuple(completed_shapes)
    return outputs
