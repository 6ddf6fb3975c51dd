"""Equality constraints between the sizes of one op's inputs and outputs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

#: Sizes of a shape. A size that the graph leaves open is a number below -1; equal numbers are equal
#: sizes. -1 is a size of which nothing is known.
Sizes = tuple[int, ...]
#: Two equal products of sizes.
EqualProducts = tuple[Sizes, Sizes]


class Op(NamedTuple):
    """One op, with its attributes and what is known about its data inputs and its outputs.

    ``inputs`` and ``outputs``: their sizes, None for an unknown rank. ``constants``: elements of
    small constants, by input. ``values``: elements of shapes that the graph computes, by input.
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
        """Return the value of an input that is a small integer constant."""
        return self.constants[position] if position < len(self.constants) else None

    def number(self, position: int) -> int | None:
        """Return the value of an input that is a constant of one element."""
        values = self.constant(position)
        return values[0] if values is not None and len(values) == 1 else None

    def value(self, position: int) -> Sizes | None:
        """Return the sizes in the value of an input."""
        return self.values[position] if position < len(self.values) else None

    def boolean(self, name: str) -> bool:
        """Return a boolean attribute."""
        return bool(self.attrs[name].b) if name in self.attrs else False

    def integer(self, name: str) -> int:
        """Return an integer attribute."""
        return int(self.attrs[name].i) if name in self.attrs else 0


Rule = Callable[[Op], Iterator[EqualProducts]]


def equal_shapes(left: Sizes | None, right: Sizes | None) -> Iterator[EqualProducts]:
    """Yield the constraints that two shapes are equal, if they have the same rank."""
    if left is not None and right is not None and len(left) == len(right):
        pairs = zip(left, right, strict=True)
        yield from (
            ((size,), (other_size,))
            for size, other_size in pairs
            if size != other_size and -1 not in (size, other_size)
        )


def equal_first_sizes(left: Sizes | None, right: Sizes | None) -> Iterator[EqualProducts]:
    """Yield the constraint that the first sizes of two shapes, the batch sizes, are equal."""
    if left and right:
        yield left[:1], right[:1]


def same_shapes(*pairs: tuple[int, int]) -> Rule:
    """Return a rule: the shapes of each pair are equal.

    Positions from 0 are inputs; -1, -2, … are outputs.
    """
    return partial(_pairwise, equal_shapes, pairs)


def same_batches(*pairs: tuple[int, int]) -> Rule:
    """Return a rule: the first sizes of each pair are equal.

    Positions are as in `same_shapes`.
    """
    return partial(_pairwise, equal_first_sizes, pairs)


def _pairwise(
    equal: Callable[..., Iterator[EqualProducts]], pairs: Iterable[tuple[int, int]], op: Op
) -> Iterator[EqualProducts]:
    for pair in pairs:
        yield from equal(*(op.input(at) if at >= 0 else op.output(-1 - at) for at in pair))


def shape_in_value(position: int) -> Rule:
    """Return a rule: the output has the shape in the value of an input."""
    return lambda op: equal_shapes(op.value(position), op.output())


def all_of(*rules: Rule) -> Rule:
    """Return the union of several rules."""

    def union(op: Op) -> Iterator[EqualProducts]:
        for rule in rules:
            yield from rule(op)

    return union
