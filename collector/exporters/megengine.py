"""The format `megengine`: the operators of a step as profiling.json, for MegEngine's tools."""

import json
from collections.abc import Iterator
from typing import Any

from ..errors import StoreError
from ..query.explanations import untraced_reason
from ..query.node_times import operators
from ..summaries.operators import Operator
from ..tfviews.encoding import valid_utf8
from .request import Request


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the file; errors are those of `operators`, and StoreError ``no-data``."""
    every = operators(request.selection)
    if not every:
        raise StoreError(untraced_reason(request.selection.jobs[0]), slug="no-data")
    by_id = {str(operator.id): operator for operator in every}
    profiler = {
        "device": {key: {operator.device: _times(operator)} for key, operator in by_id.items()},
        "host": {},
        "opr_footprint": {key: _footprint(operator) for key, operator in by_id.items()},
    }
    graph = {"var": {}, "operator": {key: _operator(key, operator) for key, operator in by_id.items()}}
    yield json.dumps({"graph_exec": graph, "profiler": profiler}).encode()


def _operator(key: str, operator: Operator) -> dict[str, Any]:
    name, kind = valid_utf8(operator.name), valid_utf8(operator.type)
    return {"name": name, "type": kind, "id": key, "input": [], "output": []}


def _times(operator: Operator) -> dict[str, float]:
    """Return the times in seconds.

    They are means over steps, so the nodes have no order in time.
    """
    return {"start": 0.0, "kern": 0.0, "end": operator.time}


def _footprint(operator: Operator) -> dict[str, Any]:
    numbers = {"computation": operator.computation, "memory": operator.memory}
    known = {name: number for name, number in numbers.items() if number is not None}
    return {**known, "in_shapes": operator.in_shapes, "out_shapes": operator.out_shapes}
