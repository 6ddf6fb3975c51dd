"""Reads the values of variables; only jobs that were imported with a checkpoint have them."""

from collections.abc import Iterable

from ..store.columns import column_list
from ..store.protocols import JobReader
from ..tfviews.tensors import Tensor, ValueLookup


def tensors(jobs: Iterable[JobReader]) -> ValueLookup:
    """Return a function that looks up a node's value by name.

    If several jobs have a value, that of the first is used.
    """
    values: dict[str, Tensor] = {}
    for job in jobs:
        table = job.table("tensors")
        columns = (column_list(table, name) for name in ("name", "dtype", "shape", "data"))
        for name, dtype, shape, data in zip(*columns, strict=True):
            values.setdefault(name, Tensor(dtype, tuple(shape), data))
    return values.get
