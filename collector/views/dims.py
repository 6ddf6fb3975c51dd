"""Sizes that graphs leave open, a batch mostly: which of them are the same, and what they were in a traced step."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError
from tfprof.collector.ingest.proto import graph_pb2
from tfprof.collector.views.definitions import Definition
from tfprof.collector.views.registry import Dims
from tfprof.collector.views.relations import Equal, Op, Sizes, equal_products

#: Ops that run the nodes of another graph: their inputs are its placeholders, in order.
_CALLS: Final = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_PLACEHOLDER: Final = "Placeholder"
_INT32, _INT64 = 3, 9
#: Rounds of finding one size from another; each finds at least one, and few depend on each other so long.
_ROUNDS: Final = 16

#: A node: the number of its graph, and its name.
Key = tuple[int, str]


class Evidence(NamedTuple):
    """A shape that was seen: of which output of a node, of whatever graph."""

    name: str
    slot: int
    dims: Dims


class OpenSizes:
    """The open sizes of a job's graphs, as numbers below 0, and what relates them."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        """Number the open sizes of ``definitions`` and relate them; of a name, the first of each graph counts."""
        self._nodes: dict[Key, Definition] = {}
        self._graphs: dict[str, list[int]] = {}
        for node in definitions:
            if self._nodes.setdefault((node.graph, node.name), node) is node:
                self._graphs.setdefault(node.name, []).append(node.graph)
        self._same: list[int] = [0]
        self._sizes: dict[int, int] = {}
        self._products: list[Equal] = []
        self._outputs = {key: tuple(map(self._numbered, node.outputs)) for key, node in self._nodes.items()}
        for pair in self._relations():
            self._relate(*pair)

    def solved(self, seen: Iterable[Evidence]) -> "Solved":
        """Return the sizes that follow from shapes that were seen; of contradicting ones the first counts."""
        sizes = dict(self._sizes)
        for name, slot, dims in seen:
            for graph in self._graphs.get(name, ()):
                known = self._shape(graph, name, slot)
                if known is not None and len(known) == len(dims):
                    for one, size in zip(known, dims, strict=True):
                        if one < 0 <= size:
                            sizes.setdefault(self._root(one), size)
        for _ in range(_ROUNDS):
            if not sum(self._follows(pair, sizes) for pair in self._products):
                break
        return Solved(self, sizes)

    def shape(self, graph: int, name: str, slot: int, sizes: Mapping[int, int]) -> Dims | None:
        """Return a node's output with what ``sizes`` say of open ones, -1 where nothing."""
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
        constants: dict[Key, Sizes | None] = {}
        functions = _functions(self._nodes.values())
        for (graph, _), node in self._nodes.items():
            data = [source for source in node.inputs if not source.control]
            inputs = [self._shape(graph, source.name, source.slot) for source in data]
            outputs = self._outputs[graph, node.name]
            if not any(shape is not None and min(shape, default=0) < 0 for shape in (*inputs, *outputs)):
                continue
            if node.op in _CALLS:
                yield from self._called(inputs, functions.get(len(data), ()))
            values = []
            for source in data:
                key = graph, source.name
                if key not in constants:
                    constants[key] = _constant(self._nodes.get(key))
                values.append(constants[key])
            yield from equal_products(node.op, Op(node.attrs, inputs, outputs, values))

    def _called(self, inputs: Sequence[Sizes | None], functions: Iterable[Sequence[Key]]) -> Iterator[Equal]:
        """Yield that a call's inputs are the placeholders of each graph that it may run, going by all of their shapes."""
        for function in functions:
            pairs = [(given, self._shape(*taken, 0)) for given, taken in zip(inputs, function, strict=True)]
            if all(_compatible(*pair) for pair in pairs):
                for given, taken in pairs:
                    if given is not None and taken is not None:
                        yield from (((one,), (other,)) for one, other in zip(given, taken, strict=True))

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
        """Find the one size that two equal products leave open; say whether there was one."""
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
        """Return the product of what is known, and what is open."""
        known = [size if size >= 0 else sizes.get(self._root(size), size) for size in side]
        return math.prod(size for size in known if size >= 0), [self._root(size) for size in known if size < 0]


class Solved(NamedTuple):
    """The sizes of one traced step, or of many alike."""

    open: OpenSizes
    sizes: Mapping[int, int]

    def shape(self, graph: int, name: str, slot: int) -> Dims | None:
        """Return the shape of a node's output, -1 for sizes that nothing follows for."""
        return self.open.shape(graph, name, slot, self.sizes)


def _compatible(given: Sizes | None, taken: Sizes | None) -> bool:
    if given is None or taken is None:
        return True
    if len(given) != len(taken):
        return False
    return all(one == other or min(one, other) < 0 for one, other in zip(given, taken, strict=True))


def _functions(nodes: Iterable[Definition]) -> dict[int, list[list[Key]]]:
    """Return the placeholders of each graph, by how many they are."""
    placeholders: dict[int, list[Key]] = {}
    for node in nodes:
        if node.op == _PLACEHOLDER:
            placeholders.setdefault(node.graph, []).append((node.graph, node.name))
    functions: dict[int, list[list[Key]]] = {}
    for keys in placeholders.values():
        functions.setdefault(len(keys), []).append(keys)
    return functions


def _constant(node: Definition | None) -> Sizes | None:
    """Return the numbers of a small constant, None when it is no such."""
    if node is None or node.op != "Const" or "value" not in node.attrs:
        return None
    try:
        tensor = graph_pb2.TensorProto.FromString(node.attrs["value"].tensor)
    except DecodeError:
        return None
    width = {_INT32: 4, _INT64: 8}.get(tensor.dtype)
    if width is None:
        return None
    count = math.prod(dim.size for dim in tensor.tensor_shape.dim)
    content = tensor.tensor_content
    numbers = tuple(tensor.int_val or tensor.int64_val)
    if content:
        numbers = tuple(
            int.from_bytes(content[at : at + width], "little", signed=True) for at in range(0, len(content), width)
        )
    if numbers and len(numbers) < count:  # the last one is written once for all that follow
        numbers += numbers[-1:] * (count - len(numbers))
    return numbers if len(numbers) == count else None
