"""Counts the operations of Einsum from its equation."""

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from .registry import Dims

_ELLIPSIS: Final = "..."


def einsum_ops(equation: str, inputs: Sequence[Dims], output: Dims) -> int:
    """Return the operations of an Einsum with fully known shapes.

    With several inputs, each combination of labels is one multiplication, and one addition if the
    equation sums over a label. With one input, only additions count, as for a sum. Raises
    ValueError if shapes and equation differ.
    """
    left, _, right = equation.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    broadcast: Dims = ()
    for term, dims in zip([*left.split(","), right], [*inputs, output], strict=True):
        labels, named, kept = _named(term, dims)
        sizes |= {label: max(length, sizes.get(label, 0)) for label, length in zip(labels, named, strict=True)}
        broadcast = tuple(max(pair) for pair in zip_longest(reversed(kept), broadcast, fillvalue=1))
    combinations = math.prod(sizes.values()) * math.prod(broadcast)
    summed = not set(sizes) <= set(right) or (_ELLIPSIS in left and _ELLIPSIS not in right)
    if len(inputs) > 1:
        return combinations * 2 if summed else combinations
    results = math.prod(sizes[label] for label in set(right.replace(_ELLIPSIS, "")))
    return combinations - results * (math.prod(broadcast) if _ELLIPSIS in right else 1) if summed else 0


def _named(term: str, dims: Dims) -> tuple[str, Dims, Dims]:
    """Return the labels of a term, their dimensions, and the dimensions of its ellipsis."""
    before, ellipsis, after = term.partition(_ELLIPSIS)
    if not ellipsis:
        return term, dims, ()
    end = len(dims) - len(after)
    return before + after, dims[: len(before)] + dims[end:], dims[len(before) : end]
