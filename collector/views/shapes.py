"""Shapes of outputs in traced steps: as recorded, as graphs have them, or as follows; and as TensorFlow's Python fills them in."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from tfprof.collector.views.definitions import Definition, Outputs, Source, complete
from tfprof.collector.views.dims import Evidence, OpenSizes, Solved
from tfprof.collector.views.executed import Row, Said, fed, in_order, inlined, recorded
from tfprof.collector.views.flops import formula
from tfprof.collector.views.nodes import Shape
from tfprof.collector.views.registry import Dims
from tfprof.collector.views.rules import DEFAULT, Rules

#: Ops that hand out the batches of a data set, and the attribute that says of which types.
_ITERATORS: Final = {"IteratorGetNext": "output_types", "IteratorGetNextSync": "output_types"}
#: Bytes of an element, by number of a DataType; a reference is 100 more.
_WIDTHS: Final = {1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 8: 8, 9: 8, 10: 1, 14: 2, 17: 2, 18: 16, 19: 2, 22: 4, 23: 8}


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


# -- as TensorFlow's Python fills shapes in ---------------------------------------------------------


def merged(known: Dims | None, other: Dims) -> Dims:
    """Return what both shapes say; ValueError when they contradict each other."""
    if known is None:
        return other
    if len(known) != len(other):
        raise ValueError
    return tuple(_merged(*pair) for pair in zip(known, other, strict=True))


def _merged(one: int, other: int) -> int:
    if -1 not in (one, other) and one != other:
        raise ValueError
    return max(one, other)


class Filled(NamedTuple):
    """Outputs by node, and how many recorded shapes contradicted the graph's."""

    outputs: dict[str, Outputs]
    contradictions: int


def filled(graph: Mapping[str, Definition], first: Iterable[tuple[str, bytes]]) -> Filled:
    """Return the outputs of a graph's nodes, those that are not fully known merged with recorded ones.

    ``first``: output signatures by node, in the order of their first appearance. Nothing is told on to consumers, so that
    the first trace decides, for good.
    """
    outputs = {name: definition.outputs for name, definition in graph.items()}
    contradictions = 0
    for name, signature in first:
        known, shapes = outputs.get(name, ()), in_order(signature)
        if not shapes or len(shapes) != len(known):
            continue
        after = list(known)
        for slot, dims in enumerate(shapes):
            if not complete(known[slot]):
                try:
                    after[slot] = merged(known[slot], dims)
                except ValueError:
                    contradictions += 1
        outputs[name] = tuple(after)
    return Filled(outputs, contradictions)


def agreed(shapes: Sequence[Dims]) -> Dims | None:
    """Return what shapes have in common: -1 where sizes differ, None where ranks do."""
    if not shapes or len({len(dims) for dims in shapes}) > 1:
        return None
    return tuple(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True))


def shown(dims: Dims | None) -> Shape:
    """Return a shape as tfprof's views have it: a scalar is (1,), an unknown rank ()."""
    return () if dims is None else dims or (1,)
