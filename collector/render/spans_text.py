"""The tree of spans as text."""

from collections.abc import Sequence
from typing import Final

from ..numbers import count, duration
from ..summaries.spans import SpanNode
from .table import Column, render

_COLUMNS: Final = (
    Column("SPAN", min_width=12, preferred_width=40),
    Column("COUNT", right=True),
    *(
        Column(title, right=True, drop_priority=drop_priority)
        for title, drop_priority in {"TOTAL": 0, "MEAN": 2, "MIN": 4, "MAX": 3}.items()
    ),
)


def _cells(node: SpanNode) -> list[str]:
    name = "  " * node.depth + f"{node.kind} {node.label}".rstrip()
    if node.running:
        return [f"{name} (not ended)", "", "", "", "", ""]
    times = (node.total_ns, node.mean_ns, node.min_ns, node.max_ns)
    return [name, count(node.count), *map(duration, times)]


def lines(nodes: Sequence[SpanNode], width: int | None) -> list[str]:
    """Return the tree as a table."""
    return render(_COLUMNS, [_cells(node) for node in nodes], width=width)
