"""The tables of jobs, for Python programs and notebooks."""

import pyarrow as pa

from .query.job_selection import Selection
from .tables.table import rows_of


class JobTables:
    """The tables of jobs as pyarrow Tables, which pandas, polars and DuckDB take as they are.

    docs/exports.md lists their columns; the ends of their names are the units. They are the tables
    that `tfprof export --table` writes. Raises UsageError ``no-such-step``, ``no-such-kind`` or
    ``no-such-device`` if the selection is wrong.
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection

    def ops(self) -> pa.Table:
        """Return the op types of the selected traced steps, most time first."""
        return self._table("ops")

    def nodes(self) -> pa.Table:
        """Return the nodes that ran in the selected traced steps, most time first."""
        return self._table("nodes")

    def executions(self) -> pa.Table:
        """Return each execution of an op in the selected traced steps."""
        return self._table("executions")

    def steps(self) -> pa.Table:
        """Return the time of each step of the jobs.

        UsageError if steps, kinds or a device are selected.
        """
        return self._table("steps")

    def spans(self) -> pa.Table:
        """Return steps and phases: fits, epochs, batches; UsageError as for `steps`."""
        return self._table("spans")

    def host(self) -> pa.Table:
        """Return CPU, memory and I/O of the jobs and their hosts; UsageError as for `steps`."""
        return self._table("host")

    def events(self) -> pa.Table:
        """Return events and alerts of the jobs, in order of time; UsageError as for `steps`."""
        return self._table("events")

    def graph(self) -> pa.Table:
        """Return the nodes of the graphs with inputs and lines; UsageError as for `steps`."""
        return self._table("graph")

    def _table(self, name: str) -> pa.Table:
        return rows_of(self._selection, name).read()
