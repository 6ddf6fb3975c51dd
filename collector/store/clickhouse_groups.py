"""Groups of traces whose aggregates ClickHouse keeps (clickhouse_tables.GROUP_TABLES).

A part of a job has as many ops as a collector seals at once. A group has the traces of one kind in
a part, since most questions are about one kind of steps. It is named by the index of its first
trace.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from ...formats import layout
from .clickhouse_tables import GROUP_TABLES
from .columns import column_list, flat, pc, row_tuples
from .devices import Devices
from .rollup import canonical_after, indexed_by_node, rollup_of
from .segment import ROLLUP_NAME, TIMES_NAME
from .step_times import histogram_of

#: Columns of TRACES that `members` reads.
COLUMNS: Final = ("trace", "kind", "key")
#: The column of GROUP_TABLES that names the group.
GROUP: Final = "row"


def members(traces: pa.Table, groups: Collection[int]) -> dict[int, list[int]]:
    """Return group -> the numbers of its traces. ``traces``: those of all groups, in order."""
    numbers: dict[int, list[int]] = {group: [] for group in groups}
    group_of_kind: dict[Any, int] = {}
    for index, (trace, kind) in enumerate(zip(column_list(traces, "trace"), _kinds(traces), strict=True)):
        if index in numbers:
            group_of_kind[kind] = index
        if kind in group_of_kind:  # otherwise no trace of this kind has ops yet
            numbers[group_of_kind[kind]].append(trace)
    return numbers


def aggregates(
    ops: pa.Table, traces: pa.Table, first: int, devices: Devices, canonical: Mapping[int, int]
) -> dict[str, pa.Table]:
    """Return the rows of GROUP_TABLES about one part of a job, with the column GROUP.

    ``ops``: sorted as by `sorted_by_node`; ``first``: the index of the first of ``traces``;
    ``canonical``: node -> its canonical device.
    """
    known = indexed_by_node(pa.array(canonical.keys(), pa.uint32()), pa.array(canonical.values(), pa.uint32()), 0)
    tables = {name: [_named(schema.empty_table(), name, first)] for name, schema in GROUP_TABLES.items()}
    places: dict[Any, list[int]] = {}
    for place, kind in enumerate(_kinds(traces)):
        places.setdefault(kind, []).append(place)
    for indexes in places.values():
        group = traces.take(indexes)
        rows = ops.filter(pc.is_in(ops["trace"], value_set=flat(group["trace"])))
        if rows.num_rows:
            rollup = rollup_of(rows, group, devices, canonical_after(rows, devices, known))
            times = histogram_of(rows, group, devices)
            for name, table in ((ROLLUP_NAME, rollup), (TIMES_NAME, times)):
                tables[name].append(_named(table, name, first + indexes[0]))
    return {name: pa.concat_tables(parts) for name, parts in tables.items()}


def _named(rows: pa.Table, name: str, group: int) -> pa.Table:
    """Return the columns of table ``name``, and GROUP."""
    numbers = pa.repeat(pa.scalar(group, pa.uint64()), rows.num_rows)
    return rows.select(GROUP_TABLES[name].names).append_column(GROUP, numbers)


def _kinds(traces: pa.Table) -> Iterator[tuple[int, int]]:
    """Yield the kind of each trace: each function is a kind of its own."""
    for kind, key in row_tuples(traces, "kind", "key"):
        yield kind, key if kind == layout.FUNCTION else 0
