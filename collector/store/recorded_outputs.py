"""Queries of the recorded outputs of a job's ops, in SQL."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from .columns import row_tuples
from .protocols import ExecutionFilter
from .schema import NONE_ID
from .sql_queries import Sql


class SqlOutputs:
    """Queries of the outputs of one job's executions, on one snapshot."""

    def __init__(self, sql: Sql, highest_node: int) -> None:
        """Query with ``sql``; ``highest_node``: the highest node id."""
        self._query, self._dialect = sql
        self._highest_node = highest_node

    def trace_groups(self, selection: ExecutionFilter, sized_nodes: Collection[int] | None) -> dict[int, int]:
        """Group the traces by their outputs; return first trace of a group -> its number of traces.

        Two traces are in one group if the selected executions of each node have the same outputs,
        each as often in both traces. For ``sized_nodes`` (None: all) the bytes of the outputs are
        also equal.
        """
        hashed_columns = ", ".join(filter(None, ("node", "outputs", self._size_sql(sized_nodes))))
        rows = self._query(f"""
            SELECT min(trace) AS first, count(*) AS traces
            FROM (
                SELECT trace, sum({self._dialect.hash}({hashed_columns})) AS kind
                FROM ops WHERE {self._where_sql(selection)} GROUP BY trace
            ) AS kinds GROUP BY kind ORDER BY first""")  # noqa: S608  # numbers and our own names
        return dict(row_tuples(rows))

    def output_counts(
        self, traces: Collection[int], selection: ExecutionFilter, sized_nodes: Collection[int] | None
    ) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield (trace, node, outputs, bytes, runs) for each trace, node and outputs, sorted.

        ``runs`` is the number of executions with these outputs, and ``bytes`` the largest size of
        the outputs of one execution. Bytes are 0 for nodes that are not in ``sized_nodes`` (None:
        all).
        """
        size = self._size_sql(sized_nodes)
        rows = self._query(f"""
            SELECT trace, node, outputs, {f"max({size})" if size else 0} AS size, count(*) AS runs FROM ops
            WHERE trace IN ({_list_sql(traces)}) AND {self._where_sql(selection)}
            GROUP BY trace, node, outputs ORDER BY trace, node, outputs""")  # noqa: S608
        return row_tuples(rows)

    def outputs_in_order(
        self, traces: Collection[int], selection: ExecutionFilter, nodes: Collection[int] | None
    ) -> Iterator[tuple[int, int, int]]:
        """Yield (trace, node, outputs) of each execution of ``nodes``, by trace, node and start.

        ``nodes``: None for all.
        """
        rows = self._query(f"""
            SELECT trace, node, outputs FROM ops
            WHERE trace IN ({_list_sql(traces)}) AND {self._where_sql(selection)} AND {self._nodes_sql(nodes)}
            ORDER BY trace, node, start_ns""")  # noqa: S608  # numbers and our own names
        return row_tuples(rows)

    def example_outputs(
        self, traces: Collection[int] | None, selection: ExecutionFilter
    ) -> Iterator[tuple[int, int, int]]:
        """Yield (node, outputs, label) of one execution of each node in ``traces`` (None: all)."""
        trace_condition = "1 = 1" if traces is None else f"trace IN ({_list_sql(traces)})"
        rows = self._query(f"""
            SELECT node, min(outputs) AS first, argMin(label, outputs) AS first_label FROM ops
            WHERE {trace_condition} AND {self._where_sql(selection)} GROUP BY node""")  # noqa: S608
        return row_tuples(rows)

    def first_occurrences(self, selection: ExecutionFilter, end: int | None) -> Iterator[tuple[int, int, int]]:
        """Yield (node, outputs, first trace with them), by trace.

        ``end``: only traces with lower numbers count, None for all traces. Executions without
        outputs are left out.
        """
        trace_condition = "" if end is None else f" AND trace < {end}"
        rows = self._query(f"""
            SELECT node, outputs, min(trace) AS first FROM ops
            WHERE {self._where_sql(selection)}{trace_condition} AND outputs <> {NONE_ID}
            GROUP BY node, outputs ORDER BY first, node, outputs""")  # noqa: S608
        return row_tuples(rows)

    def outputs_in_trace(self, node: int, trace: int) -> list[int]:
        """Return the outputs of each execution of a node in one trace, in stored order.

        The executions of a RunMetadata on one device are stored in the order of their ends.
        """
        rows = self._query(
            f"SELECT outputs FROM ops WHERE trace = {trace} AND node = {node}{self._dialect.stored_order}"  # noqa: S608
        )
        return [outputs for (outputs,) in row_tuples(rows)]

    def _size_sql(self, sized_nodes: Collection[int] | None) -> str:
        """Return the SQL expression of a row's output bytes; '' if ``sized_nodes`` is empty.

        The bytes are 0 for nodes that are not in ``sized_nodes`` (None: all).
        """
        if sized_nodes is not None and not sized_nodes:
            return ""
        return f"CASE WHEN {self._nodes_sql(sized_nodes)} THEN output_bytes ELSE 0 END"

    def _where_sql(self, selection: ExecutionFilter) -> str:
        """Return the SQL condition that selects the rows of ``selection``."""
        conditions = [self._nodes_sql(selection.nodes)]
        if selection.devices is not None:
            conditions.append(f"device IN ({_list_sql(selection.devices)})" if selection.devices else "1 = 0")
        if selection.traces is not None:
            conditions.append(self._traces_sql(selection.traces))
        return " AND ".join(conditions)

    def _nodes_sql(self, nodes: Collection[int] | None) -> str:
        """Return the SQL condition that selects the rows of ``nodes``, None for all."""
        return "1 = 1" if nodes is None else self._dialect.is_one_of("node", nodes, self._highest_node)

    def _traces_sql(self, traces: Sequence[int]) -> str:
        """Return the SQL condition that selects the rows of the ascending ``traces``."""
        if not traces:
            return "1 = 0"
        in_range = f"trace BETWEEN {traces[0]} AND {traces[-1]}"
        if len(traces) == traces[-1] - traces[0] + 1:
            return in_range
        return f"{in_range} AND {self._dialect.is_one_of('trace', traces, traces[-1])}"


def _list_sql(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))
