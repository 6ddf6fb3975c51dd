"""Infers the number of examples in a batch from the bytes of its tensors.

This is necessary for profiler sessions, which record no shapes.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from .definitions import Definition, InputSource
from .registry import Dims

#: Ops that return the batches of a data set.
ITERATORS: Final = frozenset({"IteratorGetNext", "IteratorGetNextSync"})

#: Bytes of an element, by number of its DataType.
_WIDTHS: Final = {1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 8: 8, 9: 8, 10: 1, 14: 2, 17: 2, 18: 16, 19: 2, 22: 4, 23: 8}
#: DataTypes of handles; a handle has no fixed size.
_RESOURCE, _VARIANT = 20, 21


class BatchCandidate(NamedTuple):
    """A candidate for the input batch of a step: some tensors of a graph.

    ``parts``: the tensors with a known rank, and their shapes. In them, an unknown first size
    stands for the number of examples. ``examples``: the number of examples, 0 if all sizes are
    fixed. It is None if the bytes do not fit the shapes, or if a type, a rank or a size other than
    the first is unknown.
    """

    graph: int
    parts: Sequence[tuple[InputSource, Dims]]
    examples: int | None


def batch_of_iterator(node: Definition, size: int) -> BatchCandidate:
    """Return the batch in the outputs of ``node``, which have ``size`` bytes."""
    dtypes = node.attrs["output_types"].list.type if "output_types" in node.attrs else ()
    return _batch(
        node.graph, [InputSource(node.name, slot) for slot in range(len(node.outputs))], dtypes, node.outputs, size
    )


def batch_of_arguments(placeholders: Sequence[Definition], size: int) -> BatchCandidate:
    """Return the batch in the arguments of a function.

    The arguments have ``size`` bytes. Handles, which are resources and variants, are excluded.
    """
    dtypes = [node.attrs["dtype"].type if "dtype" in node.attrs else 0 for node in placeholders]
    data = [
        (node, dtype) for node, dtype in zip(placeholders, dtypes, strict=True) if dtype not in {_RESOURCE, _VARIANT}
    ]
    shapes = [node.outputs[0] if node.outputs else None for node, _ in data]
    return _batch(
        placeholders[0].graph,
        [InputSource(node.name, 0) for node, _ in data],
        [dtype for _, dtype in data],
        shapes,
        size,
    )


def _batch(
    graph: int, sources: Sequence[InputSource], dtypes: Sequence[int], shapes: Sequence[Dims | None], size: int
) -> BatchCandidate:
    parts = [(source, dims) for source, dims in zip(sources, shapes, strict=True) if dims is not None]
    is_countable = len(parts) == len(dtypes) == len(sources) and all(dtype in _WIDTHS for dtype in dtypes)
    return BatchCandidate(graph, parts, _examples(dtypes, [dims for _, dims in parts], size) if is_countable else None)


def _examples(dtypes: Sequence[int], shapes: Sequence[Dims], size: int) -> int | None:
    """Return the number of examples for which the tensors have ``size`` bytes.

    The first size of a tensor may be open; it is then the number of examples. Return 0 if all sizes
    are fixed. Return None if the bytes do not fit the shapes, or if another size is unknown.
    """
    fixed_bytes = example_bytes = 0
    for dtype, dims in zip(dtypes, shapes, strict=True):
        sized_dims = dims[1:] if dims[:1] == (-1,) else dims
        if min(sized_dims, default=0) < 0:
            return None
        if sized_dims is dims:
            fixed_bytes += math.prod(sized_dims) * _WIDTHS[dtype]
        else:
            example_bytes += math.prod(sized_dims) * _WIDTHS[dtype]
    if not example_bytes:
        return 0 if size == fixed_bytes else None
    return (
        (size - fixed_bytes) // example_bytes
        if size > fixed_bytes and (size - fixed_bytes) % example_bytes == 0
        else None
    )
