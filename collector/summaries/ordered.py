"""The jobs that get an order, and the ops of the steps that it traced."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..store.catalog import JobInfo
from .top import TopOp


@dataclass(frozen=True, slots=True)
class OrderedJob:
    """A job that gets an order: its record, its shortest unique id, and whether its process may run."""

    info: JobInfo
    id: str
    runs: bool


@dataclass(frozen=True, slots=True)
class OrderedOps:
    """The ops of the ``steps`` traced steps of ``kind`` from ``first`` to ``last``, those with most time first."""

    kind: int
    first: int
    last: int
    steps: int
    ops: Sequence[TopOp]
