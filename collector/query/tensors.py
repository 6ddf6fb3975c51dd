"""Reads the values of variables, which jobs imported with a checkpoint have."""

from collections.abc import Iterable

from ..store.columns import listed
from ..store.protocols import JobReader
from ..tfviews.tensors import Tensor, Values


def tensors(jobs: Iterable[JobReader]) -> Values:
    """Return a function that looks up the value of a node by name; the first of several jobs that has one counts."""
    found: dict[str, Tensor] = {}
    for job in jobs:
        table = job.table("tensors")
        columns = (listed(table, name) for name in ("name", "dtype", "shape", "data"))
        for name, dtype, shape, data in zip(*columns, strict=True):
            found.setdefault(name, Tensor(dtype, tuple(shape), data))
    return found.get
