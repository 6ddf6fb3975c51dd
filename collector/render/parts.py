"""The styles of the rows of a view: an op has the color of its part of the step."""

from collections import Counter
from collections.abc import Sequence

from ..summaries.op_classes import BACKWARD, FORWARD, OPTIMIZER, class_of, phases
from ..summaries.step_records import OpExecution
from ..tfviews.nodes import Node
from ..tfviews.rows import Row


def row_styles(rows: Sequence[Row]) -> list[str]:
    """Return the style of each row.

    It is that of the part with most of the time of the row and the rows below it. A row of several
    op types has no style, nor has a row without time.
    """
    phase_of = phases([node for row in rows for node in row.nodes])
    times = [Counter[str]() for _ in rows]
    for at, row in enumerate(rows):
        for node in row.nodes:
            times[at][_style(node, phase_of)] += node.stats.micros
    open_rows: list[int] = []
    for at, row in enumerate(rows):
        while open_rows and rows[open_rows[-1]].depth >= row.depth:
            open_rows.pop()
        for parent in open_rows:
            times[parent] += times[at]
        open_rows.append(at)
    return [
        "" if row.name.startswith("(") or not count.total() else count.most_common(1)[0][0]
        for row, count in zip(rows, times, strict=True)
    ]


def _style(node: Node, phase_of: dict[str, str]) -> str:
    device = node.devices[0] if node.devices else ""
    part, detail = class_of(OpExecution(node.name, node.op, device, 0, 0, 0), phase_of)
    return detail if detail in {FORWARD, BACKWARD, OPTIMIZER} else part
