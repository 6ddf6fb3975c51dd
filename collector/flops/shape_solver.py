"""Infers the open sizes of graphs, mostly batch sizes, from the shapes in a traced step."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from .call_graph import CallGraph, Key
from .constants import KnownValues
from .constraints import Equal, Op, Sizes, equal_shapes
from .definitions import Definition
from .op_rules import equal_products
from .registry import Dims

#: Maximum rounds of inference; more are not needed, since chains of dependencies are short.
_ROUNDS: Final = 16


class RecordedShape(NamedTuple):
    """A recorded shape of a node's output."""

    graph: int
    name: str
    slot: int
    dims: Dims


class OpenSizes:
    """The open sizes of a job's graphs, numbered below -1, and the constraints between them."""

    def __init__(self, nodes: Mapping[Key, Definition], calls: CallGraph) -> None:
        """Number the open sizes of ``nodes``, and collect their constraints."""
        self._nodes = nodes
        self._calls = calls
        self._same: list[int] = [0, -1]  # -1 means unknown
        self._sizes: dict[int, int] = {}
        self._products: list[Equal] = []
        self._outputs = {key: tuple(map(self._numbered, node.outputs)) for key, node in self._nodes.items()}
        bodies = calls.bodies()
        shapes = (
            shape for (graph, _), outputs in self._outputs.items() if graph in bodies for shape in outputs if shape
        )
        self._firsts = [shape[0] for shape in shapes if shape[0] < 0]
        for pair in self._relations():
            self._relate(*pair)

    def solved(self, seen: Iterable[RecordedShape], examples: int = 0) -> "Solved":
        """Return the sizes that follow from recorded shapes.

        If shapes contradict each other, the first is used. ``examples``: default for first sizes in
        the bodies of loops, since tensors that pass through lists have no recorded shapes.
        """
        sizes = dict(self._sizes)
        for graph, name, slot, dims in seen:
            known = self._shape(graph, name, slot)
            if known is not None and len(known) == len(dims):
                for one, size in zip(known, dims, strict=True):
                    if one < 0 <= size:
                        sizes.setdefault(self._root(one), size)
        self._follow(sizes)
        if examples:
            sizes = {**dict.fromkeys(map(self._root, self._firsts), examples), **sizes}
            self._follow(sizes)
        return Solved(self, sizes)

    def _follow(self, sizes: dict[int, int]) -> None:
        for _ in range(_ROUNDS):
            if not sum(self._follows(pair, sizes) for pair in self._products):
                break

    def shape(self, graph: int, name: str, slot: int, sizes: Mapping[int, int]) -> Dims | None:
        """Return the shape of an output with open sizes replaced from ``sizes``, -1 if unknown."""
        known = self._shape(graph, name, slot)
        if known is None:
            return None
        return tuple(size if size >= 0 else sizes.get(self._root(size), -1) for size in known)

    def _shape(self, graph: int, name: str, slot: int) -> Sizes | None:
        outputs = self._outputs.get((graph, name), ())
        return outputs[slot] if slot < len(outputs) else None

    def _numbered(self, dims: Dims | None) -> Sizes | None:
        return None if dims is None else tuple(size if size >= 0 else self._new() for size in dims)

    def _new(self) -> int:
        self._same.append(-len(self._same))
        return self._same[-1]

    def _root(self, number: int) -> int:
        same = self._same
        while same[-number] != number:
            same[-number] = same[-same[-number]]
            number = same[-number]
        return number

    # -- relations -------------------------------------------------------------------------------

    def _relations(self) -> Iterator[Equal]:
        values = KnownValues(self._nodes, self._shape)
        for (graph, name), node in self._nodes.items():
            data = [source for source in node.inputs if not source.control]
            inputs = [self._shape(graph, source.name, source.slot) for source in data]
            outputs = self._outputs[graph, name]
            if any(shape is not None and min(shape, default=0) < 0 for shape in (*inputs, *outputs)):
                for position, (callee, placeholder) in self._calls.passed((graph, name)):
                    yield from equal_shapes(inputs[position], self._shape(callee, placeholder, 0))
                constants = [values.constant(graph, source) for source in data]
                known = [values.value(graph, source) for source in data]
                yield from equal_products(node.op, Op(node.attrs, inputs, outputs, constants, known))

    def _relate(self, left: Sizes, right: Sizes) -> None:
        if len(left) != 1 or len(right) != 1:
            self._products.append((left, right))
            return
        one, other = left[0], right[0]
        if one >= 0 <= other:
            return
        if one < 0 and other < 0:
            first, second = self._root(one), self._root(other)
            if first != second:
                self._same[-second] = first
                if second in self._sizes:
                    self._sizes.setdefault(first, self._sizes[second])
        else:
            self._sizes.setdefault(self._root(min(one, other)), max(one, other))

    def _follows(self, pair: Equal, sizes: dict[int, int]) -> bool:
        """Set the only open size of two equal products; return whether a size was set."""
        (left, left_open), (right, right_open) = (self._factors(side, sizes) for side in pair)
        for root in set(left_open) & set(right_open):
            left_open.remove(root)
            right_open.remove(root)
        if len(left_open) + len(right_open) != 1:
            return False
        number, rest = (right, left) if left_open else (left, right)
        if rest == 0 or number % rest:
            return False
        sizes[(left_open or right_open)[0]] = number // rest
        return True

    def _factors(self, side: Sizes, sizes: Mapping[int, int]) -> tuple[int, list[int]]:
        """Return the product of the known sizes, and the open ones."""
        known = [size if size >= 0 else sizes.get(self._root(size), size) for size in side]
        return math.prod(size for size in known if size >= 0), [self._root(size) for size in known if size < 0]


class Solved(NamedTuple):
    """The inferred sizes of one traced step, or of several equivalent ones."""

    open: OpenSizes
    sizes: Mapping[int, int]

    def shape(self, graph: int, name: str, slot: int) -> Dims | None:
        """Return the shape of a node's output, -1 for unknown sizes."""
        return self.open.shape(graph, name, slot, self.sizes)
