"""Shortens the documents of a report, so that its file stays small for any job."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..collector.numbers import count, percent


class Caps(NamedTuple):
    """Limits of a report.

    ``points``: values of a curve, each with a minimum and a maximum. ``kinds``: kinds of steps with
    curves. ``ops``: op types; the most expensive ones are kept. ``nodes``: nodes of an op type or
    compiled program. ``share``: smallest share of the time of a scope or line. ``rows``: rows of
    other tables. ``text``: characters of a name.
    """

    points: int
    kinds: int
    ops: int
    nodes: int
    share: float
    rows: int
    text: int

    def sentence(self) -> str:
        """Return the limits in words."""
        return (
            f"It holds the {count(self.ops)} most expensive ops, {self.nodes} nodes of an op or compiled program,"
            f" {self.kinds} kinds of steps with {count(2 * self.points)} values a curve, scopes and lines of at least"
            f" {percent(self.share)} of the time, and {count(self.rows)} rows of other tables."
        )


#: Limits in the order in which they are tried, until the file is small enough.
LADDER: Final = (
    Caps(2000, 8, 500, 20, 0.001, 1000, 2000),
    Caps(1000, 4, 500, 10, 0.001, 500, 500),
    Caps(500, 4, 300, 5, 0.003, 200, 300),
    Caps(200, 2, 100, 3, 0.01, 100, 200),
)


def shortened(value: Any, caps: Caps) -> Any:
    """Return a document with its long texts cut."""
    if isinstance(value, str):
        return value if len(value) <= caps.text else f"{value[: caps.text]}…"
    if isinstance(value, Mapping):
        return {key: shortened(part, caps) for key, part in value.items()}
    if isinstance(value, list):
        return [shortened(part, caps) for part in value]
    return value


def op_rows(view: Mapping[str, Any], caps: Caps) -> dict[str, Any]:
    """Return the op view with its most expensive rows, each with its longest nodes."""
    return {**view, "rows": [_with_nodes(row, caps.nodes) for row in view["rows"][: caps.ops]]}


def memory_rows(memory: Mapping[str, Any], caps: Caps) -> dict[str, Any]:
    """Return the memory of a job with the largest holders at the peak of each allocator."""
    lists = ("holders", "scopes", "lines")
    allocators = [{**each, **{name: each[name][: caps.rows] for name in lists}} for each in memory["allocators"]]
    return {**memory, "allocators": allocators}


def program_rows(compiled: Mapping[str, Any], caps: Caps) -> dict[str, Any]:
    """Return the compiled programs with the longest time, each with its longest ops."""
    programs = compiled["programs"][: caps.rows]
    return {**compiled, "programs": [{**program, "ops": program["ops"][: caps.nodes]} for program in programs]}


def tree_rows(view: Mapping[str, Any], caps: Caps) -> dict[str, Any]:
    """Return a tree view without rows below the share, and without nodes.

    A row takes at least as long as the rows below it, so no parent of a kept row is left out.
    """
    places: dict[int, int] = {}
    rows: list[dict[str, Any]] = []
    for at, row in enumerate(view["rows"]):
        if (row["share"] or 0.0) >= caps.share and (row["parent"] is None or row["parent"] in places):
            places[at] = len(rows)
            rows.append({**row, "parent": None if row["parent"] is None else places[row["parent"]], "nodes": []})
    return {**view, "rows": rows}


def _with_nodes(row: Mapping[str, Any], nodes_max: int) -> dict[str, Any]:
    nodes: Sequence[Mapping[str, Any]] = sorted(row["nodes"], key=lambda node: -node["time_ns"])
    return {**row, "nodes": list(nodes[:nodes_max])}
