"""Equality constraints among the sizes of one op's inputs and outputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

#: Sizes: as they are, below -1 what stands for one that is open, -1 for nothing known.
Sizes = tuple[int, ...]
#: Two products that are equal.
Equal = tuple[Sizes, Sizes]


class Op(NamedTuple):
    """One op: sizes by data input and output, None where not even a rank is known; what inputs hold, as far as known.

    ``constants``: numbers, of small constants; ``values``: sizes, as in a shape that the graph computes.
    """

    attrs: Mapping[str, Any]
    inputs: Sequence[Sizes | None]
    outputs: Sequence[Sizes | None]
    constants: Sequence[Sizes | None]
    values: Sequence[Sizes | None] = ()

    def input(self, position: int) -> Sizes | None:
        """Return the sizes of an input."""
        return self.inputs[position] if position < len(self.inputs) else None

    def output(self, position: int = 0) -> Sizes | None:
        """Return the sizes of an output."""
        return self.outputs[position] if position < len(self.outputs) else None

    def constant(self, position: int) -> Sizes | None:
        """Return the value of an input that is a small constant of whole numbers."""
        return self.constants[position] if position < len(self.constants) else None

    def value(self, position: int) -> Sizes | None:
        """Return the sizes that an input holds."""
        return self.values[position] if position < len(self.values) else None

    def truth(self, name: str) -> bool:
        """Return a boolean attribute."""
        return bool(self.attrs[name].b) if name in self.attrs else False

    def number(self, name: str) -> int:
        """Return a whole attribute."""
        return int(self.attrs[name].i) if name in self.attrs else 0


Relation = Callable[[Op], Iterator[Equal]]


def equal_shapes(left: Sizes | None, right: Sizes | None) -> Iterator[Equal]:
    """Yield that two shapes are the same, if they can be."""
    if left is not None and right is not None and len(left) == len(right):
        pairs = zip(left, right, strict=True)
        yield from (((one,), (other,)) for one, other in pairs if one != other and -1 not in (one, other))


def first(left: Sizes | None, right: Sizes | None) -> Iterator[Equal]:
    """Yield that the first sizes of two shapes, batches, are the same."""
    if left and right:
        yield left[:1], right[:1]


def shapes(*pairs: tuple[int, int]) -> Relation:
    """Return that shapes are the same: numbers of inputs, and -1, -2 … of outputs."""

    def of(op: Op) -> Iterator[Equal]:
        for pair in pairs:
            yield from equal_shapes(*(op.input(at) if at >= 0 else op.output(-1 - at) for at in pair))

    return of


def batches(*pairs: tuple[int, int]) -> Relation:
    """Return that first sizes are the same, numbered likewise."""

    def of(op: Op) -> Iterator[Equal]:
        for pair in pairs:
            yield from first(*(op.input(at) if at >= 0 else op.output(-1 - at) for at in pair))

    return of


def made(position: int) -> Relation:
    """Return that the output has the shape that an input holds."""
    return lambda op: equal_shapes(op.value(position), op.output())


def both(*relations: Relation) -> Relation:
    """Return what all of them say."""

    def of(op: Op) -> Iterator[Equal]:
        for relation in relations:
            yield from relation(op)

    return of
