"""The SQL of ClickHouse, where it differs from that of DuckDB."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from .clickhouse_ranges import Ranges, condition
from .clickhouse_tables import ROW_TABLES
from .sql_queries import Dialect

NO_CONDITIONS: Final[Mapping[str, str]] = MappingProxyType({})
_SOURCE: Final = re.compile(rf"\bFROM ({'|'.join(ROW_TABLES)})\b")


def is_in(column: str, numbers: Iterable[int], _maximum: int = 0) -> str:
    """Return the condition that ``column`` is one of ``numbers``."""
    return f"{column} IN ({', '.join(map(str, numbers)) or 'NULL'})"


#: Old releases have no window functions.
_WITH_LEVEL: Final = """
    SELECT trace, device, allocator, change.1 AS t_us, change.2 AS bytes, change.3 AS in_use_bytes, level FROM (
        SELECT trace, device, allocator,
            arraySort(groupArray((t_us, bytes, in_use_bytes))) AS sorted, arrayCumSum(x -> x.2, sorted) AS levels
        FROM ({changes}) GROUP BY trace, device, allocator
    ) ARRAY JOIN sorted AS change, levels AS level"""
CLICKHOUSE: Final = Dialect("cityHash64", " ORDER BY row", is_in, _WITH_LEVEL)


def rows_of_job(name: str, job: str, ranges: Ranges, start: int = 0, end: int | None = None) -> str:
    """Return the condition that selects the rows of ``job`` in table ``name``.

    ``ranges``: those that count; ``start`` and ``end``: only rows with such an index.
    """
    return f"job = '{job}' AND {condition(ranges.get(name, ()), start, end)}"


def of_job(sql: str, job: str, ranges: Ranges, conditions: Mapping[str, str] = NO_CONDITIONS) -> str:
    """Return ``sql`` with the rows of ``job`` in place of each table.

    ``conditions``: by table, a further condition of its rows. The server finds rows by their sorted
    columns only with a condition beside that of the job.
    """

    def source(match: re.Match[str]) -> str:
        name = match[1]
        rows = f"{rows_of_job(name, job, ranges)} AND {conditions.get(name, '1 = 1')}"
        return f"FROM (SELECT * FROM {name} WHERE {rows}) AS {name}"  # noqa: S608

    return _SOURCE.sub(source, sql)
