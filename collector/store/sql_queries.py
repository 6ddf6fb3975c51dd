"""Queries of all ops or graphs of a job, in SQL, for `JobReader.with_sql`.

DuckDB and ClickHouse have the same results. A `Dialect` has what they spell differently.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

import pyarrow as pa

from ...formats import layout
from .columns import row_tuples
from .schema import NONE_ID

SqlQuery = Callable[[str], pa.Table]


class Dialect(NamedTuple):
    """The SQL that differs from engine to engine.

    ``hash``: the function of the hash of several values. ``stored_order``: the end of a query whose
    rows are in the order in which they are stored. ``is_one_of``: the condition that a column is
    one of some numbers. Its last parameter is the maximum of the column and of the numbers.
    ``with_level``: the query of ``{changes}`` with a further column `level`, the sum of the bytes
    of an allocator so far. A free comes before an allocation in the same µs.
    """

    hash: str
    stored_order: str
    is_one_of: Callable[[str, Iterable[int], int], str]
    with_level: str


class Sql(NamedTuple):
    """An engine with the tables of a job: it answers ``query``, in its ``dialect``."""

    query: SqlQuery
    dialect: Dialect


def _has_bit(column: str, numbers: Iterable[int], maximum: int) -> str:
    """Return the condition that ``column`` is one of ``numbers``.

    A list of numbers in SQL would take twice as long. A value above ``maximum`` may match by
    mistake.
    """
    size = 1 << maximum.bit_length()
    bits = bytearray(b"0" * size)
    for number in numbers:
        bits[number] = ord("1")
    return f"get_bit('{bits.decode()}'::BIT, ({column} & {size - 1})::INT) = 1"


_WITH_LEVEL: Final = """
    SELECT *, sum(bytes) OVER (
        PARTITION BY trace, device, allocator ORDER BY t_us, bytes ROWS UNBOUNDED PRECEDING
    ) AS level FROM ({changes})"""
DUCKDB: Final = Dialect("hash", "", _has_bit, _WITH_LEVEL)

_MEMORY_LEFT: Final = """
    SELECT trace, CAST(sum(live_bytes + persistent_bytes) AS Int64) AS residual, max(in_use_bytes) AS in_use
    FROM ops GROUP BY trace ORDER BY trace"""
_CHANGES: Final = f"""
    SELECT trace, {{device}} AS device, allocator, t_us, bytes, in_use_bytes FROM memory_changes
    UNION ALL SELECT trace, device, {NONE_ID} AS allocator, t_us, bytes, 0 AS in_use_bytes FROM allocations"""  # noqa: S608
_MEMORY_LEVELS: Final = """
    SELECT trace, device, allocator,
        CAST(CASE WHEN max(in_use_bytes) > 0 THEN max(in_use_bytes) ELSE max(level) END AS Int64) AS peak,
        CAST(CASE WHEN max(in_use_bytes) > 0 THEN argMin(in_use_bytes - bytes, t_us) ELSE -1 END AS Int64) AS before
    FROM ({levels}) GROUP BY trace, device, allocator ORDER BY trace, device, allocator"""
_PERSISTENT: Final = """
    SELECT trace, node, device, persistent_bytes, start_ns, start_us_fix FROM ops WHERE persistent_bytes <> 0"""
_LAST_TRACES: Final = "SELECT node, device, max(trace) AS last FROM ops GROUP BY node, device"
_IDENTICAL_GRAPHS: Final = """
    SELECT count(*) AS graphs, nodes, min(example) AS name, min(graph) AS first FROM (
        SELECT graph, count(*) AS nodes, sum({hash}(name, op)) AS kind, min(name) AS example
        FROM graph_nodes GROUP BY graph
    ) AS kinds GROUP BY nodes, kind ORDER BY nodes, first"""
#: Added to the labels of kernels, which have fewer bits, so that other labels come first.
_KERNEL: Final = 1 << 40
_WINDOW_LABELS: Final = f"""
    SELECT node, min(CASE WHEN device IN ({{streams}}) THEN label + {_KERNEL} ELSE label END) AS first FROM ops
    WHERE trace IN (SELECT trace FROM traces WHERE source = {layout.XSPACE})
    GROUP BY node"""  # noqa: S608  # a constant


def memory_levels(sql: Sql, hosts: Mapping[int, int]) -> list[tuple[int, int, int, int, int]]:
    """Return (trace, device, allocator, peak, bytes before the step) of allocators.

    The bytes before the step are -1 if the allocator does not report what it has in use. The peak
    is then that of the step's own blocks. Allocators of GPUs in a RunMetadata are NONE_ID.
    ``hosts``: GPU -> the device that has the memory of its other allocators.
    """
    cases = "".join(f" WHEN {gpu} THEN {host}" for gpu, host in hosts.items())
    device = f"CASE device{cases} ELSE device END" if cases else "device"
    levels = sql.dialect.with_level.format(changes=_CHANGES.format(device=device))
    return list(row_tuples(sql.query(_MEMORY_LEVELS.format(levels=levels))))


def kept_memory(sql: Sql, traces: Collection[int], allocator: int) -> list[tuple[int, int]]:
    """Return (node, bytes) of what nodes allocated in ``traces`` and did not free there.

    The most bytes come first.
    """
    rows = sql.query(
        f"""SELECT node, CAST(sum(bytes) AS Int64) AS kept FROM memory_changes
        WHERE trace IN ({", ".join(map(str, traces))}) AND allocator = {allocator} AND node <> {NONE_ID}
        GROUP BY node HAVING sum(bytes) > 0 ORDER BY kept DESC, node"""  # noqa: S608  # numbers
    )
    return list(row_tuples(rows))


def memory_left(sql: Sql) -> list[tuple[int, int, int]]:
    """Return (trace, bytes left allocated, peak bytes in use) of each trace."""
    return list(row_tuples(sql.query(_MEMORY_LEFT)))


def persistent_allocations(sql: Sql) -> list[tuple[int, int, int, int]]:
    """Return (trace, node, device, bytes) of executions with persistent bytes and a start."""
    bases_ns = dict(row_tuples(sql.query("SELECT trace, base_ns FROM traces")))
    return [
        (trace, node, device, size)
        for trace, node, device, size, start_ns, us_fix in row_tuples(sql.query(_PERSISTENT))
        if (bases_ns.get(trace, 0) + start_ns) // 1000 + us_fix > 0
    ]


def new_nodes(sql: Sql, left_out: Collection[int]) -> dict[int, int]:
    """Return trace -> number of nodes, but those on ``left_out`` devices, that it has first."""
    where = f"WHERE device NOT IN ({', '.join(map(str, left_out))})" if left_out else ""
    firsts = f"SELECT node, min(trace) AS first FROM ops {where} GROUP BY node"  # noqa: S608  # numbers
    return dict(row_tuples(sql.query(f"SELECT first, count(*) AS nodes FROM ({firsts}) GROUP BY first")))  # noqa: S608


def last_traces(sql: Sql) -> list[tuple[int, int, int]]:
    """Return (node, device, last trace in which the node ran on the device)."""
    return list(row_tuples(sql.query(_LAST_TRACES)))


def window_labels(sql: Sql, streams: Collection[int]) -> dict[int, int]:
    """Return node -> one of its labels, for the nodes that profiler sessions recorded.

    Labels on the devices ``streams`` are names of kernels: they count for nodes without others.
    """
    query = _WINDOW_LABELS.format(streams=", ".join(map(str, streams)) or NONE_ID)
    return {node: label % _KERNEL for node, label in row_tuples(sql.query(query))}


def identical_graphs(sql: Sql) -> list[tuple[int, int, str, int]]:
    """Return (graphs, nodes, name, graph) of each set of identical graphs.

    Graphs are identical if their nodes have the same names and ops. ``graphs`` is the number of
    graphs in the set, and ``nodes`` the number of nodes of each graph. ``name`` is the name of one
    of the nodes, and ``graph`` the number of one of the graphs, as examples.
    """
    return list(row_tuples(sql.query(_IDENTICAL_GRAPHS.format(hash=sql.dialect.hash))))


def graph_names(sql: Sql, graph: int) -> set[str]:
    """Return the names of the nodes of one graph."""
    rows = sql.query(f"SELECT name FROM graph_nodes WHERE graph = {graph}")  # noqa: S608  # a number
    return {name for (name,) in row_tuples(rows)}
