"""The trees of spans and of activities as text."""

from collections.abc import Sequence
from typing import Final

from ..numbers import count, duration, percent
from ..summaries.activities import ActivityNode
from ..summaries.spans import SpanNode, largest_lines
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


def lines(nodes: Sequence[SpanNode], width: int | None, top: int = 0) -> list[str]:
    """Return the tree as a table, of the ``top`` longest lines and those above them; 0 for all."""
    shown = largest_lines(nodes, top)
    return [*render(_COLUMNS, [_cells(node) for node in shown], width=width), *_hidden(len(nodes) - len(shown))]


def _hidden(number: int) -> list[str]:
    return [f"and {number:,} more (--top)"] if number else []


_ACTIVITY_COLUMNS: Final = (
    Column("ACTIVITY", min_width=16, preferred_width=30),
    Column("COUNT", right=True),
    Column("TOTAL", right=True),
    *(
        Column(title, right=True, drop_priority=drop_priority)
        for title, drop_priority in {"SELF": 5, "MEDIAN": 3, "MAX": 4, "SHARE": 0}.items()
    ),
    Column("WHERE", drop_priority=2),
)
#: Minimum share of the job's time in a line, since most jobs have many names with hardly any time.
_SHOWN_MIN: Final = 0.0005
#: Minimum share of an activity's time in a place that is named.
_PLACE_MIN: Final = 0.05


def activity_lines(nodes: Sequence[ActivityNode], width: int | None, top: int = 0) -> list[str]:
    """Return the tree of activities as a table; ``top``: as for `lines`."""
    long = [node for node in nodes if node.share >= _SHOWN_MIN]
    shown = largest_lines(long, top)
    lines = render(_ACTIVITY_COLUMNS, list(map(_activity_cells, shown)), width=width) if shown else []
    lines += _hidden(len(long) - len(shown))
    hidden = len(nodes) - len(long)
    return [*lines, f"and {hidden} of less than {percent(_SHOWN_MIN)} each (--json)"] if hidden else lines


def _activity_cells(node: ActivityNode) -> list[str]:
    times = (node.total_ns, node.self_ns, node.median_ns, node.max_ns)
    name = f"{'  ' * node.depth}{node.category} {node.name}"
    return [name, count(node.count), *map(duration, times), percent(node.share), _places(node)]


def _places(node: ActivityNode) -> str:
    """Return where an activity runs, most of it first."""
    places = {
        "in steps": node.in_steps_ns,
        "outside of steps": node.outside_ns,
        "other threads": node.other_threads_ns,
    }
    named = [place for place, ns in places.items() if ns >= _PLACE_MIN * node.total_ns and ns]
    return ", ".join(sorted(named, key=lambda place: -places[place]))
