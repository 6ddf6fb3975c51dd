"""The phases of the application as text."""

from collections.abc import Sequence
from typing import Final

from ..numbers import count, duration
from ..summaries.spans import Phase
from .table import Column, render

_COLUMNS: Final = (
    Column("SPAN", least=12, fair=40),
    Column("COUNT", right=True),
    *(Column(title, right=True, spare=spare) for title, spare in {"TOTAL": 0, "MEAN": 2, "MIN": 4, "MAX": 3}.items()),
)


def _cells(phase: Phase) -> list[str]:
    name = "  " * phase.depth + f"{phase.kind} {phase.label}".rstrip()
    if phase.running:
        return [f"{name} (not ended)", "", "", "", "", ""]
    times = (phase.total_ns, phase.mean_ns, phase.min_ns, phase.max_ns)
    return [name, count(phase.count), *map(duration, times)]


def lines(phases: Sequence[Phase], width: int | None) -> list[str]:
    """Return a tree as a table."""
    return render(_COLUMNS, [_cells(phase) for phase in phases], width=width)
