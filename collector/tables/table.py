"""The list of tables."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from ...formats.exports import DEFAULT_TABLE, TABLES
from ..errors import UsageError
from ..query.job_selection import Selection
from . import columns
from .executions import executions
from .job_data import events, graph, host
from .spans import spans, steps
from .view_numbers import nodes, ops


class Rows(NamedTuple):
    """A table: its columns, and its rows in parts."""

    schema: pa.Schema
    tables: Iterable[pa.Table]

    def read(self) -> pa.Table:
        """Return all rows as one table."""
        return pa.concat_tables([self.schema.empty_table(), *self.tables])


class _Table(NamedTuple):
    """A table; ``parts`` yields its rows. ``is_selected``: it has only the selected steps."""

    schema: pa.Schema
    parts: Callable[[Selection], Iterator[pa.Table]]
    is_selected: bool = False


_TABLES: Final = {
    "executions": _Table(columns.EXECUTIONS, executions, is_selected=True),
    "ops": _Table(columns.OPS, ops, is_selected=True),
    "nodes": _Table(columns.NODES, nodes, is_selected=True),
    "steps": _Table(columns.SPANS, steps),
    "spans": _Table(columns.SPANS, spans),
    "host": _Table(columns.HOST, host),
    "events": _Table(columns.EVENTS, events),
    "graph": _Table(columns.GRAPH, graph),
}


def rows_of(selection: Selection, name: str | None = None) -> Rows:
    """Return the table called ``name`` of the jobs in ``selection``; None means the default.

    UsageError if there is none, or if steps, kinds or a device are selected and the table covers
    whole jobs; also ``no-such-step``, ``no-such-kind``, ``no-such-device``.
    """
    table = _TABLES.get(name or DEFAULT_TABLE)
    if table is None:
        raise UsageError(f"no table is called '{name}': {', '.join(TABLES)}")
    selected = (selection.steps, selection.kinds, selection.device, selection.since_ns)
    if not table.is_selected and selected != (None, None, None, 0):
        raise UsageError(f"the table {name} covers whole jobs: select no steps, time, kind or device")
    return Rows(table.schema, table.parts(selection))
