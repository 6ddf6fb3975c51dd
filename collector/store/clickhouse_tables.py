"""The tables of a store in ClickHouse: those of a job, and four that list jobs.

A row of a job has its job, its owner and the time at which the job was opened, and its place: the
batch and the row. Readers read only the batches that the table `batches` lists. A batch is listed
only after its rows were inserted, so an interrupted insert has no effect.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ..errors import UsageError
from .clickhouse_address import Address
from .schema import JOB_TABLES, ROLLUP, STEP_TIMES
from .segment import ROLLUP_NAME, TIMES_NAME

_U16: Final[pa.DataType] = pa.uint16()
_U32: Final[pa.DataType] = pa.uint32()
_U64: Final[pa.DataType] = pa.uint64()
_TEXT: Final[pa.DataType] = pa.utf8()
_TEXTS: Final[pa.DataType] = pa.list_(pa.utf8())
_BYTES: Final[pa.DataType] = pa.binary()

#: Version of these tables, which development versions counted with that of folders. Version 5 added
#: GROUP_TABLES.
TABLES_VERSION: Final = 5
#: Node -> its canonical device. It depends on the order of arrival, which sealed ops do not have.
CANONICAL: Final = pa.schema([("node", _U32), ("device", _U32)])
CANONICAL_NAME: Final = "canonical_devices"
#: Aggregates of groups of traces (clickhouse_groups.py), without canonical devices, which may be
#: known only later. Indexes of rows and batches are those of traces: a row has the index of its
#: group's first trace. An AggregatingMergeTree would merge listed rows with others.
GROUP_TABLES: Final = {
    ROLLUP_NAME: ROLLUP.remove(ROLLUP.get_field_index("canonical")),
    TIMES_NAME: STEP_TIMES,
}
#: The tables with the rows of jobs.
ROW_TABLES: Final = {**JOB_TABLES, CANONICAL_NAME: CANONICAL, **GROUP_TABLES}
#: Columns of each of them: hexadecimal id; user; time of opening (s, real time); number of the
#: batch; index of the row within the table of the job.
PLACE: Final = pa.schema(
    [
        ("job", _BYTES),
        ("owner", _TEXT),
        ("opened", _U32),
        ("batch", _U64),
        ("row", _U64),
    ]
)
#: Batches: the table, the index of the first row in the job's table, the rows and bytes. A batch
#: that grows is listed again; the entry with the most rows counts.
BATCHES: Final = pa.schema(
    [
        ("job", _BYTES),
        ("owner", _TEXT),
        ("opened", _U32),
        ("name", _TEXT),
        ("first", _U64),
        ("batch", _U64),
        ("rows", _U64),
        ("bytes", _U64),
    ]
)
#: Jobs and their changes; the last row of a job counts. `info`: the job file; `removed`: 1 if the
#: job was removed; `changed_ns`: real time.
JOBS: Final = pa.schema(
    [
        ("job", _BYTES),
        ("owner", _TEXT),
        ("opened", _U32),
        ("changed_ns", _U64),
        ("info", _TEXT),
        ("tags", _TEXTS),
        ("removed", _U16),
    ]
)
#: Table -> the columns by which it is sorted, after the job. If the rows of a table have an order
#: in time, the columns give that order.
_ORDER: Final = {
    "ops": "trace, row",
    "traces": "trace, row",
    "allocations": "trace, row",
    "memory_changes": "trace, row",
    "block_addresses": "trace, row",
    "output_memory": "trace, row",
    "spans": "start_ns, row",
    "samples": "t_ns, row",
    "thread_samples": "t_ns, row",
    "busy_threads": "t_ns, row",
    "host_samples": "t_ns, row",
    "events": "t_ns, row",
    "alerts": "found_ns, row",
}
#: Table -> engine and order. A new row replaces an old one, which the server drops later.
_REPLACED: Final = {
    "batches": ("ReplacingMergeTree(rows)", "job, name, first, batch"),
    "jobs": ("ReplacingMergeTree(changed_ns)", "job"),
}
#: Type of Arrow -> type of ClickHouse. Texts may be any bytes, which a String holds.
_TYPES: Final = {
    pa.uint16(): "UInt16",
    pa.uint32(): "UInt32",
    pa.uint64(): "UInt64",
    pa.int64(): "Int64",
    pa.float64(): "Float64",
    pa.bool_(): "UInt8",
    pa.utf8(): "String",
    pa.binary(): "String",
    pa.list_(pa.utf8()): "Array(String)",
    pa.list_(pa.int64()): "Array(Int64)",
}
#: Columns whose type does not follow from that of their Arrow column.
_COLUMN_TYPES: Final = {"job": "FixedString(16)", "opened": "DateTime"}
#: Name of a user or role, which can stand in backquotes.
_USER: Final = re.compile(r"[^\s`\\]+")
_CLUSTER: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
#: End of the name of the table with the rows of one server, if the rows are on several.
PART: Final = "_part"


class Rules(NamedTuple):
    """Who sees a job, and how long it is kept.

    ``keep_days``: days from its opening until a job is removed, 0 for no limit. ``admins``: users
    or roles of the server that see all jobs; each other user then sees the jobs of which they are
    the owner. Without ``admins``, every user who may read the tables sees all jobs. ``cluster``:
    the servers that share the jobs, "" for one server; all rows of a job are on one of them.
    """

    keep_days: int = 0
    admins: Sequence[str] = ()
    cluster: str = ""


def statements(address: Address, rules: Rules) -> Iterator[str]:
    """Yield the statements that create the database and its tables unless they exist.

    UsageError if an admin is no name.
    """
    for admin in rules.admins:
        if not _USER.fullmatch(admin) or not admin.isprintable():
            raise UsageError(f"{admin!r} is not the name of a user or role of ClickHouse")
    if rules.cluster and not _CLUSTER.fullmatch(rules.cluster):
        raise UsageError(f"{rules.cluster!r} is not the name of a cluster of ClickHouse")
    if rules.cluster and rules.admins:
        raise UsageError("--admins and --cluster exclude each other: rows of other servers have no policy")
    database = f"`{address.database}`"
    yield f"CREATE DATABASE IF NOT EXISTS {database}"
    tables = {name: pa.schema([*PLACE, *schema]) for name, schema in ROW_TABLES.items()}
    tables |= {"batches": BATCHES, "jobs": JOBS}
    for name, schema in tables.items():
        if rules.cluster:
            part = f"{name}{PART}"
            yield _table(database, part, name, schema, rules)
            engine = f"Distributed('{rules.cluster}', {database}, {part}, cityHash64(job))"
            yield f"CREATE TABLE IF NOT EXISTS {database}.{name} AS {database}.{part} ENGINE = {engine}"
        else:
            yield _table(database, name, name, schema, rules)
    yield f"CREATE TABLE IF NOT EXISTS {database}.store (version UInt32) ENGINE = MergeTree ORDER BY version"
    yield f"INSERT INTO {database}.store SELECT {TABLES_VERSION} WHERE (SELECT count() FROM {database}.store) = 0"  # noqa: S608
    if rules.admins:
        admins = ", ".join(f"`{admin}`" for admin in rules.admins)
        for name in tables:
            on = f"ON {database}.{name} FOR SELECT USING"
            yield f"CREATE ROW POLICY IF NOT EXISTS tfprof_owner {on} owner = currentUser() TO ALL EXCEPT {admins}"
            yield f"CREATE ROW POLICY IF NOT EXISTS tfprof_admins {on} 1 TO {admins}"


def column_type(field: Any) -> str:
    """Return the type of ClickHouse of a column of Arrow."""
    return _COLUMN_TYPES.get(field.name, _TYPES[field.type])


def _table(database: str, table: str, name: str, schema: pa.Schema, rules: Rules) -> str:
    """Return the statement of ``table``, which has the columns and the order of ``name``."""
    fields: Any = schema
    columns = ", ".join(f"{field.name} {column_type(field)}" for field in fields)
    retention = f" TTL opened + INTERVAL {rules.keep_days} DAY" if rules.keep_days else ""
    engine, order = _REPLACED.get(name, ("MergeTree", f"job, {_ORDER.get(name, 'row')}"))
    return (
        f"CREATE TABLE IF NOT EXISTS {database}.{table} ({columns}) ENGINE = {engine} PARTITION BY toYYYYMM(opened) "
        f"ORDER BY ({order}){retention}"
    )
