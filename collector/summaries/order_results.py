"""The jobs that get an order, and the ops of the steps that it traced."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...formats.orders import OrderAnswer
from ..store.catalog import JobInfo
from .top import TopOp


@dataclass(frozen=True, slots=True)
class OrderTarget:
    """A job that gets an order.

    ``info``: the content of the job file. ``id``: the shortest unique id of the job. ``may_run``:
    whether the process may be running.
    """

    info: JobInfo
    id: str
    may_run: bool


@dataclass(frozen=True, slots=True)
class OrderOps:
    """The ops of the traced steps of one kind, those with the most time first.

    ``kind``: its name. ``steps``: number of traced steps. ``first`` and ``last``: ordinals of the
    first and the last traced step.
    """

    kind: str
    first: int
    last: int
    steps: int
    ops: Sequence[TopOp]


@dataclass(frozen=True, slots=True)
class JobAnswers:
    """The answers of a job to an order: one, or also one after the end of the order.

    ``ops``: the ops of the traced steps, None if they are unknown or were not asked for.
    """

    job: OrderTarget
    answers: tuple[OrderAnswer, ...]
    ops: OrderOps | None = None
