"""Finds flows between executions: from a producer to its consumer, from an op to its kernel."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ..store.columns import integers
from ..tfviews.nodes import STREAM
from .model import OP, Label

FLOWS: Final[Any] = pa.list_(pa.uint64())


class _Execution(NamedTuple):
    start_ns: int
    end_ns: int
    row: int
    device: str

    @property
    def is_kernel(self) -> bool:
        return STREAM in self.device.lower()


def flows(
    rows: pa.Table,
    labels: Sequence[Label],
    devices: dict[int, str],
    inputs_of: Callable[[str], Iterable[str]],
    numbers: Iterator[int],
) -> tuple[Any, Any]:
    """Return for each row the numbers of the flows that leave it, and of those that enter it.

    ``rows`` has the columns step, label, device, start_ns and duration_ns. Flows are between
    devices only. ``inputs_of`` returns the names of the nodes whose outputs a node uses.
    ``numbers`` yields the numbers of new flows.
    """
    leaving: list[list[int]] = [[] for _ in range(rows.num_rows)]
    entering: list[list[int]] = [[] for _ in range(rows.num_rows)]
    by_node = _by_node(rows, labels, devices)
    for (step, node), executions in by_node.items():
        ops = [execution for execution in executions if not execution.is_kernel]
        sources = [by_node.get((step, name), []) for name in inputs_of(node)] if ops else []
        pairs = [(_last(ops, kernel.start_ns), kernel) for kernel in executions if kernel.is_kernel]
        for executions_of_input in sources:
            places = {execution.device for execution in executions_of_input}
            pairs += [(_producer(executions_of_input, op), op) for op in ops if places - {op.device}]
        for source, target in pairs:
            if source is not None:
                number = next(numbers)
                leaving[source.row].append(number)
                entering[target.row].append(number)
    return pa.array(leaving, FLOWS), pa.array(entering, FLOWS)


def _by_node(
    rows: pa.Table, labels: Sequence[Label], devices: dict[int, str]
) -> dict[tuple[int, str], list[_Execution]]:
    """Return the executions of ops by step and node, in order of their starts."""
    names = ("start_ns", "duration_ns", "step", "label", "device")
    executions = zip(*(integers(rows[name]) for name in names), range(rows.num_rows), strict=True)
    by_node: dict[tuple[int, str], list[_Execution]] = {}
    for start_ns, duration_ns, step, label, device, row in sorted(executions):
        if labels[label].category == OP:
            execution = _Execution(start_ns, start_ns + duration_ns, row, devices[device])
            by_node.setdefault((step, labels[label].node), []).append(execution)
    return by_node


def _last(executions: Sequence[_Execution], start_ns: int) -> _Execution | None:
    """Return the last of ``executions`` that has begun at ``start_ns``."""
    return next((execution for execution in reversed(executions) if execution.start_ns <= start_ns), None)


def _producer(executions: Sequence[_Execution], consumer: _Execution) -> _Execution | None:
    """Return the last execution on another device that has ended when ``consumer`` begins."""
    return next(
        (
            execution
            for execution in reversed(executions)
            if not execution.is_kernel and execution.device != consumer.device and execution.end_ns <= consumer.start_ns
        ),
        None,
    )
