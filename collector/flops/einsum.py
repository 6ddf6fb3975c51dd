"""Counts the operations of Einsum from its equation."""

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from .registry import Dims

_ELLIPSIS: Final = "..."


def einsum_ops(equation: str, inputs: Sequence[Dims], output: Dims) -> int:
    """Return the operations of an Einsum with fully known shapes.

    With several inputs, each combination of the labels' indices is one multiplication, and one
    addition if the equation sums over a label. With one input, only additions count, as for a sum.
    Raises ValueError if the shapes do not fit the equation.
    """
    left, _, right = equation.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    broadcast_dims: Dims = ()
    for term, dims in zip([*left.split(","), right], [*inputs, output], strict=True):
        labels, label_dims, ellipsis_dims = _split_term(term, dims)
        sizes |= {label: max(length, sizes.get(label, 0)) for label, length in zip(labels, label_dims, strict=True)}
        broadcast_dims = tuple(max(pair) for pair in zip_longest(reversed(ellipsis_dims), broadcast_dims, fillvalue=1))
    combinations = math.prod(sizes.values()) * math.prod(broadcast_dims)
    has_sum = not set(sizes) <= set(right) or (_ELLIPSIS in left and _ELLIPSIS not in right)
    if len(inputs) > 1:
        return combinations * 2 if has_sum else combinations
    results = math.prod(sizes[label] for label in set(right.replace(_ELLIPSIS, "")))
    return combinations - results * (math.prod(broadcast_dims) if _ELLIPSIS in right else 1) if has_sum else 0


def _split_term(term: str, dims: Dims) -> tuple[str, Dims, Dims]:
    """Return the labels of a term, their dimensions, and the dimensions of its ellipsis."""
    before, ellipsis, after = term.partition(_ELLIPSIS)
    if not ellipsis:
        return term, dims, ()
    end = len(dims) - len(after)
    return before + after, dims[: len(before)] + dims[end:], dims[len(before) : end]
