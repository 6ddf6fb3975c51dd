"""The columns of each table: times in ns (`_ns`), sizes in bytes (`_bytes`)."""

from typing import Final

import pyarrow as pa

from ...formats import layout
from ..tfviews.nodes import Stats

_U32: Final[pa.DataType] = pa.uint32()
_U64: Final[pa.DataType] = pa.uint64()
_I64: Final[pa.DataType] = pa.int64()
_F64: Final[pa.DataType] = pa.float64()
TEXT: Final[pa.DataType] = pa.utf8()
_TEXTS: Final[pa.DataType] = pa.list_(TEXT)
_BOOL: Final[pa.DataType] = pa.bool_()

#: First columns of tables whose rows belong to one job.
JOB: Final = (("job", TEXT), ("job_name", TEXT), ("host", TEXT), ("pid", _I64))
#: Columns of counters with names other than in `Stats`. The names end in the unit, ns or bytes.
_STATS_NAMES: Final = {
    "micros": "time_ns",
    "accelerator_micros": "accelerator_ns",
    "cpu_micros": "cpu_ns",
    "bytes": "requested_bytes",
}
_STATS: Final = tuple((_STATS_NAMES.get(name, name), _F64 if name == "runs" else _I64) for name in Stats._fields)
#: The flags of spans that have a column, by its name.
FLAGS: Final = {
    "traced": layout.FLAG_TRACED,
    "failed": layout.FLAG_FAILED,
    "setup": layout.FLAG_SETUP,
    "sampled": layout.FLAG_SAMPLED,
}
_SPAN: Final = (
    *(("kind", TEXT), ("number", _U64), ("count", _U32), ("start_ns", _I64), ("total_ns", _I64)),
    *(("min_ns", _I64), ("max_ns", _I64), ("thread", _U32), ("parent", _U64)),
    *((name, _BOOL) for name in FLAGS),
)

EXECUTIONS: Final = pa.schema(
    [
        *JOB,
        *(("kind", TEXT), ("step", _U64), ("trace", _U32), ("node", TEXT), ("op", TEXT)),
        *(("category", TEXT), ("line", TEXT), ("device", TEXT), ("thread", _U32), ("start_ns", _I64)),
        *(("duration_ns", _I64), ("requested_bytes", _I64), ("peak_bytes", _I64), ("residual_bytes", _I64)),
        ("output_bytes", _I64),
    ]
)
OPS: Final = pa.schema([("op", TEXT), ("devices", _TEXTS), ("line", TEXT), ("nodes", _I64), *_STATS])
NODES: Final = pa.schema(
    [("node", TEXT), ("op", TEXT), ("devices", _TEXTS), ("line", TEXT), ("steps", _I64), *_STATS],
)
SPANS: Final = pa.schema([*JOB, *_SPAN])
HOST: Final = pa.schema([*JOB, ("t_ns", _I64), ("series", TEXT), ("unit", TEXT), ("value", _F64)])
EVENTS: Final = pa.schema([*JOB, ("t_ns", _I64), ("slug", TEXT), ("text", TEXT), ("count", _I64)])
GRAPH: Final = pa.schema(
    [
        *JOB,
        *(("graph", _U32), ("node", TEXT), ("op", TEXT), ("device", TEXT), ("inputs", _TEXTS)),
        *(("file", TEXT), ("line", _I64), ("function", TEXT)),
    ]
)
