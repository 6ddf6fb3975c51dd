"""Infers the open sizes of graphs, mostly batch sizes, from the shapes in a traced step."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from .call_graph import CallGraph, NodeKey
from .constants import KnownValues
from .constraints import EqualProducts, Op, Sizes, equal_shapes
from .definitions import Definition
from .op_rules import equal_products
from .registry import Dims

#: Maximum number of rounds of inference; chains of dependencies are shorter.
_ROUNDS: Final = 16


class RecordedShape(NamedTuple):
    """A recorded shape of a node's output."""

    graph: int
    name: str
    slot: int
    dims: Dims


class OpenSizes:
    """The open sizes of a job's graphs, numbered below -1, and the constraints between them."""

    def __init__(self, nodes: Mapping[NodeKey, Definition], calls: CallGraph) -> None:
        """Number the open sizes of ``nodes``, and collect their constraints."""
        self._nodes = nodes
        self._calls = calls
        #: Union-find forest of equal sizes: element n is the parent of size -n; size -1 is unknown.
        self._parents: list[int] = [0, -1]
        self._sizes: dict[int, int] = {}
        self._products: list[EqualProducts] = []
        self._outputs = {key: tuple(map(self._with_numbers, node.outputs)) for key, node in self._nodes.items()}
        bodies = calls.loop_bodies()
        shapes = (
            shape for (graph, _), outputs in self._outputs.items() if graph in bodies for shape in outputs if shape
        )
        self._loop_batch_sizes = [shape[0] for shape in shapes if shape[0] < 0]
        for pair in self._constraints():
            self._add_constraint(*pair)

    def solve(self, recorded: Iterable[RecordedShape], examples: int = 0) -> "InferredSizes":
        """Return the sizes that follow from recorded shapes.

        If shapes contradict each other, the first is used. ``examples``: the batch size, 0 if it is
        unknown. It is the default for the first size of shapes in loop bodies: loops pass tensors
        through TensorLists, whose elements have no recorded shapes.
        """
        sizes = dict(self._sizes)
        for graph, name, slot, dims in recorded:
            numbered_sizes = self._shape(graph, name, slot)
            if numbered_sizes is not None and len(numbered_sizes) == len(dims):
                for number, size in zip(numbered_sizes, dims, strict=True):
                    if number < 0 <= size:
                        sizes.setdefault(self._root(number), size)
        self._propagate(sizes)
        if examples:
            sizes = {**dict.fromkeys(map(self._root, self._loop_batch_sizes), examples), **sizes}
            self._propagate(sizes)
        return InferredSizes(self, sizes)

    def _propagate(self, sizes: dict[int, int]) -> None:
        for _ in range(_ROUNDS):
            if not sum(self._infer_size(pair, sizes) for pair in self._products):
                break

    def shape(self, graph: int, name: str, slot: int, sizes: Mapping[int, int]) -> Dims | None:
        """Return the shape of an output with open sizes replaced from ``sizes``, -1 if unknown."""
        numbered_sizes = self._shape(graph, name, slot)
        if numbered_sizes is None:
            return None
        return tuple(size if size >= 0 else sizes.get(self._root(size), -1) for size in numbered_sizes)

    def _shape(self, graph: int, name: str, slot: int) -> Sizes | None:
        outputs = self._outputs.get((graph, name), ())
        return outputs[slot] if slot < len(outputs) else None

    def _with_numbers(self, dims: Dims | None) -> Sizes | None:
        return None if dims is None else tuple(size if size >= 0 else self._new_number() for size in dims)

    def _new_number(self) -> int:
        self._parents.append(-len(self._parents))
        return self._parents[-1]

    def _root(self, number: int) -> int:
        parents = self._parents
        while parents[-number] != number:
            parents[-number] = parents[-parents[-number]]
            number = parents[-number]
        return number

    # -- constraints ------------------------------------------------------------------------------

    def _constraints(self) -> Iterator[EqualProducts]:
        values = KnownValues(self._nodes, self._shape)
        for (graph, name), node in self._nodes.items():
            data_inputs = [source for source in node.inputs if not source.is_control]
            inputs = [self._shape(graph, source.name, source.slot) for source in data_inputs]
            outputs = self._outputs[graph, name]
            if any(shape is not None and min(shape, default=0) < 0 for shape in (*inputs, *outputs)):
                for position, (callee, placeholder) in self._calls.passed_arguments((graph, name)):
                    yield from equal_shapes(inputs[position], self._shape(callee, placeholder, 0))
                constants = [values.constant(graph, source) for source in data_inputs]
                input_values = [values.value(graph, source) for source in data_inputs]
                yield from equal_products(node.op, Op(node.attrs, inputs, outputs, constants, input_values))

    def _add_constraint(self, left: Sizes, right: Sizes) -> None:
        if len(left) != 1 or len(right) != 1:
            self._products.append((left, right))
            return
        size, other_size = left[0], right[0]
        if size >= 0 <= other_size:
            return
        if size < 0 and other_size < 0:
            first, second = self._root(size), self._root(other_size)
            if first != second:
                self._parents[-second] = first
                if second in self._sizes:
                    self._sizes.setdefault(first, self._sizes[second])
        else:
            self._sizes.setdefault(self._root(min(size, other_size)), max(size, other_size))

    def _infer_size(self, pair: EqualProducts, sizes: dict[int, int]) -> bool:
        """Set the only open size of two equal products; return whether a size was set."""
        (left, left_open), (right, right_open) = (self._factors(side, sizes) for side in pair)
        for root in set(left_open) & set(right_open):
            left_open.remove(root)
            right_open.remove(root)
        if len(left_open) + len(right_open) != 1:
            return False
        product, factor = (right, left) if left_open else (left, right)
        if factor == 0 or product % factor:
            return False
        sizes[(left_open or right_open)[0]] = product // factor
        return True

    def _factors(self, side: Sizes, sizes: Mapping[int, int]) -> tuple[int, list[int]]:
        """Return the product of the known sizes, and the open ones."""
        current_sizes = [size if size >= 0 else sizes.get(self._root(size), size) for size in side]
        open_sizes = [self._root(size) for size in current_sizes if size < 0]
        return math.prod(size for size in current_sizes if size >= 0), open_sizes


class InferredSizes(NamedTuple):
    """The inferred sizes of one traced step, or of several equivalent steps."""

    open_sizes: OpenSizes
    sizes: Mapping[int, int]

    def shape(self, graph: int, name: str, slot: int) -> Dims | None:
        """Return the shape of a node's output, -1 for unknown sizes."""
        return self.open_sizes.shape(graph, name, slot, self.sizes)
