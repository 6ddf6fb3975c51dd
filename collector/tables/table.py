"""The list of tables."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from ...formats.exports import DEFAULT_TABLE, TABLES
from ..errors import UsageError
from ..query.job_selection import Selection, ids_of
from ..query.profile import jobs_of_other_kinds
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
    """A table; ``parts`` yields its rows.

    ``is_selected``: it has only the selected steps. ``is_sum``: its rows are sums over all jobs.
    """

    schema: pa.Schema
    parts: Callable[[Selection], Iterator[pa.Table]]
    is_selected: bool = False
    is_sum: bool = False


_TABLES: Final = {
    "executions": _Table(columns.EXECUTIONS, executions, is_selected=True),
    "ops": _Table(columns.OPS, ops, is_selected=True, is_sum=True),
    "nodes": _Table(columns.NODES, nodes, is_selected=True, is_sum=True),
    "steps": _Table(columns.SPANS, steps),
    "spans": _Table(columns.SPANS, spans),
    "host": _Table(columns.HOST, host),
    "events": _Table(columns.EVENTS, events),
    "graph": _Table(columns.GRAPH, graph),
}


def rows_of(selection: Selection, name: str | None = None, notes: list[str] | None = None) -> Rows:
    """Return the table called ``name`` of the jobs in ``selection``; None means the default.

    A line about jobs that the table leaves out is added to ``notes``.

    UsageError if there is none, or if steps, kinds or a device are selected and the table covers
    whole jobs; also ``no-such-step``, ``no-such-kind``, ``no-such-device``.
    """
    table = _TABLES.get(name or DEFAULT_TABLE)
    if table is None:
        raise UsageError(f"no table is called '{name}': {', '.join(TABLES)}")
    selected = (selection.steps, selection.kinds, selection.device, selection.since_ns)
    if not table.is_selected and selected != (None, None, None, 0):
        raise UsageError(f"the table {name} covers whole jobs: select no steps, time, kind or device")
    if notes is not None and table.is_sum and (left_out := jobs_of_other_kinds(selection)):
        ids = ids_of(selection.jobs)
        jobs = ", ".join(f"{ids[job.info.hex]} {job.info.name}".rstrip() for job in left_out)
        notes.append(f"left out, without traced steps of the kind shown (--kind): {jobs}")
    return Rows(table.schema, table.parts(selection))
