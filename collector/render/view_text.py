"""The default text of a view: a heading and an aligned table or tree, as wide as the terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from ..tfviews.options import Options, primary_counter
from ..tfviews.rows import Row, VisibleRows
from ..tfviews.tensors import ValueLookup, no_value
from . import colors, heading
from .heading import Subject
from .parts import row_styles
from .row_cells import CellContext, ViewColumn, columns
from .table import render

#: Columns that move above the table if all rows have the same value, with the text there.
_FACT_FORMATS: Final = {"device": "on {}", "line": "all made at {}"}


def _common(column: ViewColumn, rows: Sequence[Row], context: CellContext) -> str | None:
    """Return the value that all rows have in a column, if the column may move above the table.

    None if rows have several values, or if the column may not move. Rows without a device do not
    count.
    """
    if column.name not in _FACT_FORMATS:
        return None
    texts = {column.cell(row, context) for row in rows} - ({""} if column.name == "device" else set())
    return texts.pop() if len(texts) == 1 else None


def lines(
    subject: Subject,
    options: Options,
    rows: VisibleRows,
    spread_steps: int,
    width: int | None,
    values: ValueLookup = no_value,
) -> Iterator[str]:
    """Yield the heading and the table; the value of a variable follows its row.

    ``spread_steps``: number of steps in the spread. ``values`` looks up the value of a variable.
    """
    context = CellContext(max(1, subject.trace_count), rows.total)
    shown_columns = [column for column in columns(subject.view, options) if column.is_informative(rows.rows)]
    movable_columns = () if "select" in options.explicit else shown_columns  # a selected column stays a column
    common_texts = {
        column.name: text for column in movable_columns if (text := _common(column, rows.rows, context)) is not None
    }
    shown_columns = [column for column in shown_columns if column.name not in common_texts]
    has_spread = any(column.name == "spread" for column in shown_columns)
    facts = [_FACT_FORMATS[name].format(text) for name, text in common_texts.items() if text]
    yield from heading.lines(
        subject, rows.total.micros / context.steps, facts, spread_steps if has_spread else 0, width
    )
    if not rows.rows:
        return
    cells = [[column.cell(row, context) for column in shown_columns] for row in rows.rows]
    parts = row_styles(rows.rows) if colors.are_used() else ()
    title_line, *texts = render([column.column for column in shown_columns], cells, width=width, parts=parts)
    yield title_line
    for row, text in zip(rows.rows, texts, strict=True):
        yield text
        value = values(row.key)
        if value is not None:
            yield from value.text().removesuffix("\n").split("\n")


def _entries(view: str, number: int) -> str:
    singular, plural = _ENTRIES[view]
    return f"{number:,} {singular if number == 1 else plural}"


_ENTRIES: Final = {
    "op": ("op type", "op types"),
    "scope": ("scope or node", "scopes and nodes"),
    "graph": ("node", "nodes"),
    "code": ("line", "lines"),
}


def omission_text(view: str, options: Options, rows: VisibleRows) -> str:
    """Return the number of entries without a row of their own, and the options that show them.

    The text is empty if each entry has a row.
    """
    counter = primary_counter(options)
    condition = "that took no time" if counter.endswith("micros") else f"without {counter}"
    parts = []
    if rows.empty_count:
        parts.append(f"left out: {_entries(view, rows.empty_count)} {condition}")
    if rows.small_count:
        first, later = ("in one row: ", "; in one row: ") if view == "op" else ("left out: ", ", ")
        small_entries = f"{rows.small_count:,}" if parts else _entries(view, rows.small_count)
        parts.append(f"{later if parts else first}{small_entries} of less than 0.5 %")
    if parts:
        parts[-1] += f" (-min_{counter} 0 shows them)"
    if rows.cut_count:
        place = "; " if parts else "in one row: " if view == "op" else "left out: "
        parts.append(f"{place}{_entries(view, rows.cut_count)} beyond --top {options.top}")
    if rows.library_count:
        place = ", " if parts else "left out: "
        parts.append(f"{place}{rows.library_count:,} calls in libraries (-show_name_regexes '.*' shows them)")
    return "".join(parts)
