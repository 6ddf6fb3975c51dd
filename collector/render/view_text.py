"""The default text of a view: a heading and an aligned table or tree, as wide as the terminal."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ..numbers import count, counted, date_and_time, duration
from ..query.job_selection import ids_of
from ..summaries.kinds import range_text
from ..tfviews.options import STEP, Options, primary_counter
from ..tfviews.rows import Row, VisibleRows
from ..tfviews.tensors import no_value
from . import colors
from .parts import row_styles
from .row_cells import CellContext, ViewColumn, columns
from .table import render
from .wrapping import wrapped

if TYPE_CHECKING:
    from ..query.job_selection import Selection
    from ..query.own_layout import AnswerRows

#: Columns that move above the table if all rows have the same value, with the text there.
_FACT_FORMATS: Final = {"device": "on {}", "line": "all made at {}"}
#: Maximum number of jobs that are named.
_NAMES_MAX: Final = 3


def lines(answer_rows: "AnswerRows", width: int | None) -> Iterator[str]:
    """Yield the heading, the table, and what it leaves out, at most ``width`` wide.

    The value of a variable follows its row.
    """
    answer, rows = answer_rows.answer, answer_rows.rows
    context = CellContext(answer_rows.steps, rows.total)
    shown_columns = [column for column in columns(answer.view.name, answer.options) if column.is_informative(rows.rows)]
    movable_columns = () if "select" in answer.options.explicit else shown_columns  # a selected column stays a column
    common_texts = {
        column.name: text for column in movable_columns if (text := _common(column, rows.rows, context)) is not None
    }
    shown_columns = [column for column in shown_columns if column.name not in common_texts]
    facts = [_FACT_FORMATS[name].format(text) for name, text in common_texts.items() if text]
    has_spread = any(column.name == "spread" for column in shown_columns)
    yield from (colors.paint("title", text) for text in wrapped(_heading(answer_rows), width))
    yield from wrapped(_facts(answer_rows, facts, has_spread=has_spread), width)
    if rows.rows:
        yield from _table(answer_rows, shown_columns, context, width)
    yield from wrapped(_omission_text(answer.view.name, answer.options, rows), width)


def _heading(answer_rows: "AnswerRows") -> str:
    """Return the name of the view, its jobs and steps."""
    answer = answer_rows.answer
    selection = answer.selection
    steps = f", of the steps {range_text(*selection.steps)}" if selection.steps else ""
    where = f", on devices like '{selection.device}'" if selection.device else ""
    since = f", since {date_and_time(selection.since_ns)}" if selection.since_ns else ""
    by = f" by {answer.options.by}" * bool(answer.options.by)
    subject = f"{answer.view.name} view of {_jobs(selection)}{by}"
    return f"{subject}: {_steps(answer_rows)}{steps}{since}{where}"


def _jobs(selection: "Selection") -> str:
    jobs, ids = selection.jobs, ids_of(selection.jobs)
    names = ", ".join(f"{ids[job.info.hex]} {job.info.name}".strip() for job in jobs[:_NAMES_MAX])
    return f"job{'s' * (len(jobs) > 1)} {names}" + (f" and {len(jobs) - _NAMES_MAX} more" if jobs[_NAMES_MAX:] else "")


def _steps(answer_rows: "AnswerRows") -> str:
    """Return the number and kind of the traced steps, and the number of all steps of that kind."""
    profile, step = answer_rows.answer.profile, answer_rows.answer.options.step
    trace_count, all_steps = answer_rows.trace_count, answer_rows.all_steps
    if profile is None or not trace_count:
        return "the graph alone"
    kinds = list(profile.kinds)
    if step >= 0:
        return f"{kinds[0] if kinds else 'step'} {count(step)}"
    by_kind = ", ".join(f"{number:,} {kind}" for kind, number in profile.kinds.items())
    by_kind = f" ({by_kind})" if kinds[1:] else ""
    kind = f"{kinds[0]} " if len(kinds) == 1 else ""
    of_all = f" of {'about ' * answer_rows.is_estimate}{count(all_steps)}" * (all_steps > trace_count)
    return f"{counted(trace_count, f'traced {kind}step')}{by_kind}{of_all}"


def _facts(answer_rows: "AnswerRows", facts: Sequence[str], *, has_spread: bool) -> str:
    """Return what stands below the heading; ``facts`` hold for all rows."""
    answer, spread_steps = answer_rows.answer, answer_rows.spread_steps
    ns = answer_rows.rows.total.micros / answer_rows.steps
    parts = [f"{duration(ns)} of ops a step, all threads together"] if ns else []
    parts = [", ".join([*parts, *facts])] if parts or facts else []
    if answer.profile and answer.profile.other_kinds:
        others = ", ".join(f"{number:,} {kind}" for kind, number in answer.profile.other_kinds.items())
        parts.append(f"also traced: {others} (--kind)")
    if has_spread and 1 < spread_steps < answer_rows.trace_count:
        by_step = ", and so do the rows" * (answer.options.by == STEP)
        parts.append(f"the spread covers {spread_steps} steps{by_step}")
    return "; ".join(parts)


def _common(column: ViewColumn, rows: Sequence[Row], context: CellContext) -> str | None:
    """Return the value that all rows have in a column, if the column may move above the table.

    None if rows have several values, or if the column may not move. Rows without a device do not
    count.
    """
    if column.name not in _FACT_FORMATS:
        return None
    texts = {column.cell(row, context) for row in rows} - ({""} if column.name == "device" else set())
    return texts.pop() if len(texts) == 1 else None


def _table(
    answer_rows: "AnswerRows", shown_columns: Sequence[ViewColumn], context: CellContext, width: int | None
) -> Iterator[str]:
    rows = answer_rows.rows.rows
    value_of = answer_rows.answer.values().get("values", no_value)
    cells = [[column.cell(row, context) for column in shown_columns] for row in rows]
    parts = row_styles(rows) if colors.are_used() else ()
    title_line, *texts = render([column.column for column in shown_columns], cells, width=width, parts=parts)
    yield title_line
    for row, text in zip(rows, texts, strict=True):
        yield text
        value = value_of(row.key)
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


def _omission_text(view: str, options: Options, rows: VisibleRows) -> str:
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
        parts.append(f"{place}{counted(rows.library_count, 'call')} in libraries (-show_name_regexes '.*' shows them)")
    return "".join(parts)
