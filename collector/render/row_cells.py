"""The columns of the views' default text.

A column has a function that returns the cell of a row, and a rule that hides it if it is
uninformative.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from ..numbers import bar, count, duration, percent, quantity, range_of, size
from ..summaries.top import short_device
from ..tfviews.nodes import Stats, shape_text
from ..tfviews.options import Options, primary_counter
from ..tfviews.rows import Row, extremes
from . import colors
from .table import Column

#: Columns of numbers, by name in `-select`: title and format of the number per step.
_PER_STEP: Final[dict[str, tuple[str, Callable[[float], str]]]] = {
    "micros": ("time/step", duration),
    "accelerator_micros": ("GPU time", duration),
    "cpu_micros": ("CPU time", duration),
    "float_ops": ("flops/step", quantity),
    "bytes": ("requested/step", size),
    "peak_bytes": ("peak/step", size),
    "residual_bytes": ("kept/step", size),
    "output_bytes": ("outputs/step", size),
}
_TIME: Final = "micros"
_PARTS_OF_TIME: Final = ("accelerator_micros", "cpu_micros")
#: Columns that a narrow terminal drops, the highest number first.
_DROP_PRIORITIES: Final = {"line": 1, "self": 2, "calls": 3, "spread": 4, "op": 5, "device": 6, "bar": 7}
#: Width of a bar that stands for 100 %.
_BAR_WIDTH: Final = 12
#: Preferred width of the column of names in the op view, its minimum width in all views, and its
#: preferred width in trees.
_PREFERRED_WIDTHS, _MIN_WIDTH = {"op": 28}, 18
_PREFERRED_TREE_WIDTH: Final = 36
#: The column *self* is shown if an entry's own time is more than 1/_OWN_DIVISOR of the entry's
#: total time.
_OWN_DIVISOR: Final = 20


class CellContext(NamedTuple):
    """Values that cells need besides their row.

    `steps`: number of steps; `whole`: the numbers to which shares refer.
    """

    steps: int
    whole: Stats


#: Returns the text of a row in a column.
Cell = Callable[[Row, CellContext], str]


class ViewColumn(NamedTuple):
    """A column, its cells, and whether it is informative for the rows."""

    name: str
    column: Column
    cell: Cell
    is_informative: Callable[[Sequence[Row]], bool]


def columns(view: str, options: Options) -> list[ViewColumn]:
    """Return the selected columns of ``view``; the column of names comes first."""
    primary = primary_counter(options)
    selected = options.select | {primary} if options.select & {*_PER_STEP, "params", "occurrence"} else options.select
    numbers = [column for column in (primary, *_PER_STEP, "params") if column in selected]
    shown_columns = [_name(view)]
    for column in dict.fromkeys(numbers):
        shown_columns.append(_number(column))
        if column == primary:
            shown_columns += [_share(primary), *([_bar(primary)] if colors.are_used() else [])]
        if column == _TIME:
            shown_columns += [_self(view), *map(_part_of_time, _PARTS_OF_TIME), _spread()]
    extra_columns: tuple[str, ...] = ("calls", "op", "line", "device") if "select" not in options.explicit else ()
    if "occurrence" in selected:
        extra_columns = ("calls",)
    texts = [column for column in _TEXTS if column in selected or (column in extra_columns and column != options.by)]
    return [*shown_columns, *(_TEXTS[column](view) for column in texts)]


# -- numbers --------------------------------------------------------------------------------------


def _name(view: str) -> ViewColumn:
    return ViewColumn(
        "name",
        Column(
            _NAME_TITLES[view], min_width=_MIN_WIDTH, preferred_width=_PREFERRED_WIDTHS.get(view, _PREFERRED_TREE_WIDTH)
        ),
        lambda row, _context: "  " * row.depth + row.name,
        bool,
    )


_NAME_TITLES: Final = {"op": "op", "scope": "scope", "graph": "node (its inputs below)", "code": "line"}


def _mean(counter: str, stats: Stats, context: CellContext) -> str:
    value = getattr(stats, counter)
    return "" if not value else count(value) if counter == "params" else _PER_STEP[counter][1](value / context.steps)


def _has_number(counter: str) -> Callable[[Sequence[Row]], bool]:
    return lambda rows: any(getattr(row.total, counter) for row in rows)


def _number(counter: str) -> ViewColumn:
    title = "params" if counter == "params" else _PER_STEP[counter][0]
    return ViewColumn(
        counter,
        Column(title, right=True),
        lambda row, context: _mean(counter, row.total, context),
        _has_number(counter),
    )


def _share(counter: str) -> ViewColumn:
    def cell(row: Row, context: CellContext) -> str:
        part, whole = getattr(row.total, counter), getattr(context.whole, counter)
        return percent(part / whole) if part and whole else ""

    return ViewColumn("share", Column("share", right=True), cell, _has_number(counter))


def _bar(counter: str) -> ViewColumn:
    """Return the column of bars as long as the shares, for terminals."""

    def cell(row: Row, context: CellContext) -> str:
        whole = getattr(context.whole, counter)
        return bar(getattr(row.total, counter) / whole, _BAR_WIDTH) if whole > 0 else ""

    column = Column("", drop_priority=_DROP_PRIORITIES["bar"], is_bar=True)
    return ViewColumn("bar", column, cell, _has_number(counter))


def _self(view: str) -> ViewColumn:
    """Return the column of own time.

    It is shown if an entry with entries below it has a relevant own time.
    """

    def is_informative(rows: Sequence[Row]) -> bool:
        return any(not row.is_leaf and row.own.micros * _OWN_DIVISOR > row.total.micros for row in rows)

    column = Column("self", right=True, drop_priority=0 if view == "graph" else _DROP_PRIORITIES["self"])
    return ViewColumn("self", column, lambda row, context: _mean(_TIME, row.own, context), is_informative)


def _part_of_time(counter: str) -> ViewColumn:
    """Return the column of time on one kind of device; it is shown if ops ran on several kinds."""

    def is_informative(rows: Sequence[Row]) -> bool:
        return all(any(getattr(row.total, part) for row in rows) for part in _PARTS_OF_TIME)

    column = Column(_PER_STEP[counter][0], right=True, drop_priority=_DROP_PRIORITIES["self"])
    return ViewColumn(counter, column, lambda row, context: _mean(counter, row.total, context), is_informative)


def _spread() -> ViewColumn:
    def cell(row: Row, context: CellContext) -> str:
        if not any(row.times):
            return ""
        typical_ns = row.total.micros / context.steps
        shortest_ns, longest_ns = extremes(row.times, typical_ns)
        return range_of(shortest_ns, typical_ns, longest_ns)

    column = Column("min/median/max", right=True, drop_priority=_DROP_PRIORITIES["spread"])
    return ViewColumn("spread", column, cell, lambda rows: any(len(row.times) > 1 for row in rows))


# -- texts ----------------------------------------------------------------------------------------


def _calls(_view: str) -> ViewColumn:
    def cell(row: Row, context: CellContext) -> str:
        return quantity(row.total.runs / context.steps) if row.total.runs else ""

    column = Column("calls/step", right=True, drop_priority=_DROP_PRIORITIES["calls"])
    return ViewColumn("calls", column, cell, _has_number("runs"))


def _occurrence(view: str) -> ViewColumn:
    column = Column("nodes", right=True, drop_priority=_DROP_PRIORITIES["calls"])
    return ViewColumn("occurrence", column, lambda row, _context: count(row.definitions), lambda _rows: view != "code")


def _text(
    name: str, title: str, drop_priority: int, min_width: int, text: Callable[[Row], str]
) -> Callable[[str], ViewColumn]:
    def column_of(_view: str) -> ViewColumn:
        column = Column(title, min_width=min_width, drop_priority=drop_priority)
        return ViewColumn(name, column, lambda row, _context: text(row), lambda rows: any(map(text, rows)))

    return column_of


def _comma_list(texts: Iterable[str]) -> str:
    return ",".join(sorted(set(texts)))


def _devices(row: Row) -> str:
    return _comma_list(short_device(device) for node in row.nodes if node.stats.runs for device in node.devices)


def _input_shapes(row: Row) -> str:
    shapes = (
        ", ".join(shape_text(shape) for shape in node.facts.input_shapes)
        for node in row.nodes
        if node.facts.input_shapes
    )
    return " | ".join(dict.fromkeys(shapes))


def _op(view: str) -> ViewColumn:
    title = "op" if view == "graph" else "mostly"
    column = Column(title, min_width=20, drop_priority=_DROP_PRIORITIES["op"])
    return ViewColumn(
        "op", column, lambda row, _context: row.op, lambda rows: view != "op" and any(row.op for row in rows)
    )


def _line(view: str) -> ViewColumn:
    column = Column("line", min_width=20, drop_priority=_DROP_PRIORITIES["line"])
    return ViewColumn(
        "line", column, lambda row, _context: row.line, lambda rows: view != "code" and any(row.line for row in rows)
    )


_TEXTS: Final[dict[str, Callable[[str], ViewColumn]]] = {
    "calls": _calls,
    "occurrence": _occurrence,
    "op": _op,
    "op_types": _text(
        "op_types",
        "types",
        3,
        12,
        lambda row: _comma_list(type_ for node in row.nodes for type_ in (node.op, *node.facts.types)),
    ),
    "device": _text("device", "device", _DROP_PRIORITIES["device"], 0, _devices),
    "input_shapes": _text("input_shapes", "input shapes", 2, 12, _input_shapes),
    "line": _line,
}
