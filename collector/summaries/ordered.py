"""Jobs that an order is to, and the ops of what it traced."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..store.catalog import JobInfo
from .top import TopOp


@dataclass(frozen=True, slots=True)
class OrderedJob:
    """A job that an order is to: the shortest id that no other job has, and whether it may obey."""

    info: JobInfo
    id: str
    runs: bool


@dataclass(frozen=True, slots=True)
class OrderedOps:
    """The ops of the ``steps`` traced steps from ``first`` to ``last`` of ``kind``, most of the time first."""

    kind: int
    first: int
    last: int
    steps: int
    ops: Sequence[TopOp]
