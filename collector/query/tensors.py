"""Reads the values of variables: of jobs that were imported with a checkpoint."""

from collections.abc import Iterable

from ..store.columns import listed
from ..store.reader import Job
from ..tfviews.tensors import Tensor, Values


def tensors(jobs: Iterable[Job]) -> Values:
    """Return what looks up the value of a node by name: of several jobs the first that has one."""
    found: dict[str, Tensor] = {}
    for job in jobs:
        table = job.table("tensors")
        columns = (listed(table, name) for name in ("name", "dtype", "shape", "data"))
        for name, dtype, shape, data in zip(*columns, strict=True):
            found.setdefault(name, Tensor(dtype, tuple(shape), data))
    return found.get
