"""The rows of one job in ClickHouse, and queries of them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from ..errors import StoreError
from . import clickhouse_groups as groups
from .clickhouse_aggregates import Sources
from .clickhouse_dialect import NO_CONDITIONS, is_in, of_job, rows_of_job
from .clickhouse_ranges import Ranges, covering, row_counts
from .clickhouse_server import Server
from .clickhouse_tables import CANONICAL_NAME, GROUP_TABLES, ROW_TABLES
from .columns import column_list, row_tuples, typed
from .devices import Devices, device_rows
from .segment import ROLLUP_NAME
from .sql_queries import SqlQuery


class JobTables:
    """The tables of one job; what was listed when they were first read does not change."""

    def __init__(self, server: Server, job: str) -> None:
        """Read the rows of ``job``, a uid in hexadecimal, from ``server``."""
        self._server = server
        self._job = job

    @cached_property
    def ranges(self) -> Ranges:
        """The rows of each table that count, as they are when this is first read."""
        rows = self._server.query(
            f"SELECT name, batch, first, max(rows) AS size FROM batches WHERE job = '{self._job}' "  # noqa: S608
            "GROUP BY name, batch, first"
        )
        return covering(row_tuples(rows))

    @cached_property
    def names(self) -> pa.Table:
        """The table `names`."""
        return self.table("names", None)

    @cached_property
    def devices(self) -> Devices:
        """The devices of the job."""
        return Devices(device_rows(self.names))

    @cached_property
    def canonical(self) -> pa.Table:
        """The canonical devices of nodes."""
        return self.table(CANONICAL_NAME, None)

    def table(
        self,
        name: str,
        columns: Sequence[str] | None,
        condition: str = "",
        start: int = 0,
        end: int | None = None,
    ) -> pa.Table:
        """Return ``columns`` of the rows of a table that meet ``condition``, in stored order.

        ``start`` and ``end``: only rows with such an index.
        """
        schema = ROW_TABLES[name]
        if columns is not None:
            fields: Any = [schema.field(column) for column in columns]
            schema = pa.schema(fields)
        listed = row_counts(self.ranges).get(name, 0)
        if start >= listed:
            return schema.empty_table()
        where = rows_of_job(name, self._job, self.ranges, start, end) + condition
        rows = self._server.query(f"SELECT {', '.join(schema.names)} FROM {name} WHERE {where} ORDER BY row")  # noqa: S608
        expected = min(listed, listed if end is None else end) - start
        if not condition and rows.num_rows < expected:
            raise self._damage(f"{name} has {rows.num_rows:,} of {expected:,} rows")
        return self._cast(rows, schema)

    @cached_property
    def _groups(self) -> dict[int, list[int]]:
        """The groups of traces whose aggregates are stored, with the numbers of their traces."""
        end = row_counts(self.ranges).get(ROLLUP_NAME, 0)
        if not end:
            return {}
        names = row_tuples(self.query(f"SELECT DISTINCT {groups.GROUP} FROM {ROLLUP_NAME}"))  # noqa: S608
        return groups.members(self.table("traces", groups.COLUMNS, end=end), {name for (name,) in names})

    def sources(self, traces: Iterable[int] | None) -> Sources:
        """Return the sources of the aggregates of ``traces``, None for all.

        The aggregates of a group are used if all its traces are selected.
        """
        end = row_counts(self.ranges).get(ROLLUP_NAME, 0)
        if traces is None and end:
            others = column_list(self.table("traces", ("trace",), start=end), "trace")
            return Sources(self.query, self.query_of_ops(others) if others else None)
        if traces is None:
            return Sources(None, self.query)
        selected_traces = set(traces)
        whole = {group: numbers for group, numbers in self._groups.items() if selected_traces.issuperset(numbers)}
        rest = selected_traces.difference(*whole.values())
        conditions = dict.fromkeys(GROUP_TABLES, is_in(groups.GROUP, whole))
        return Sources(
            partial(self.query, conditions=conditions) if whole else None, self.query_of_ops(rest) if rest else None
        )

    def query_of_ops(self, traces: Iterable[int]) -> SqlQuery:
        """Return a query of the tables of this job, with only the ops of ``traces``."""
        return partial(self.query, conditions={"ops": is_in("trace", sorted(set(traces)))})

    def query(self, sql: str, conditions: Mapping[str, str] = NO_CONDITIONS) -> pa.Table:
        """Return the result of ``sql`` about the tables of this job; see ``of_job``."""
        rows = self._server.query(of_job(sql, self._job, self.ranges, conditions))
        fields: Any = rows.schema
        texts = [pa.field(field.name, pa.utf8() if field.type == pa.binary() else field.type) for field in fields]
        return self._cast(rows, pa.schema(texts))

    def _cast(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        try:
            return typed(rows, schema)
        except (pa.ArrowException, ValueError) as error:
            raise self._damage(str(error).partition("\n")[0]) from None

    def _damage(self, text: str) -> StoreError:
        return StoreError(f"job {self._job} in {self._server.address.text} is damaged: {text}", "store-damaged")
