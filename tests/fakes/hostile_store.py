"""A store in which every text of a job contains control characters."""

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from fakes import ended_jobs
from fakes.made_store import IDENTITY, START_NS, rows, span, trace_tables, write_host, write_job
from fakes.run_metadata import run_metadata
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.store.catalog import change_tags
from tfprof.collector.store.reader import LocalStore
from tfprof.formats import layout

#: Sets a terminal's title, rings its bell, clears it; ends a line and begins a forged one; does the
#: same by C1 characters; reverses the direction of text.
COMMANDS: Final = "\x1b]0;title\x07\x1b[2J\b\0\r\nforged: line\t\x7f\x85\x9b2J\u2028\u202e\u2066"
#: The same, with a character that is no UTF-8, as in names of files.
HOSTILE: Final = COMMANDS + "\udcff"
LONG: Final = COMMANDS + "x" * 10_000
JOB: Final = 0xAA10000000000001
_NODE: Final = ("scope/" + COMMANDS).encode()
_STEP: Final = {"kind": layout.FUNCTION, "key": 7, "step": 4, "before": 5e6, "now": 5e7}


def _tables() -> dict[str, pa.Table | pa.RecordBatch]:
    graph = graph_pb2.GraphDef(
        node=[
            graph_pb2.NodeDef(name=_NODE.decode(), op=COMMANDS),
            graph_pb2.NodeDef(name="long", op=LONG, input=[_NODE.decode()]),
        ]
    )
    device = b"/job:localhost/replica:0/task:0/device:CPU:0" + COMMANDS.encode()
    steps = [run_metadata([_NODE, b"long"], device=device) for _ in range(3)]
    frame = {"file": f"/src/{COMMANDS}.py", "line": 3, "function": LONG, "text": COMMANDS}
    return {
        **ended_jobs.tables(),
        **trace_tables(graph.SerializeToString(), steps),
        "frames": rows("frames", [frame | {"stack": stack} for stack in (0, 1)]),
        "stacks": rows("stacks", [{"name": _NODE.decode()}, {"name": "long", "stack": 1}]),
        "spans": rows("spans", [span(layout.FUNCTION, number, number, 5, key=7) for number in range(1, 9)]),
        "alerts": rows("alerts", [{"found_ns": START_NS, "slug": slug, **_STEP} for slug in ("slower", COMMANDS)]),
        "events": rows("events", [{"t_ns": START_NS, "slug": COMMANDS, "text": LONG, "count": 2}]),
    }


def write(path: Path) -> Path:
    """Write the store and return its path."""
    texts: dict[str, Any] = {name: HOSTILE for name, value in IDENTITY.items() if isinstance(value, str)}
    write_job(
        path,
        JOB,
        _tables(),
        identity={**texts, "launch": IDENTITY["launch"], "command": [HOSTILE], "functions": {"7": LONG}},
        counters={**ended_jobs.COUNTERS, "policy": HOSTILE},
        end={**ended_jobs.COUNTERS, "status": 1},
    )
    write_job(path, JOB + 1, {}, identity={"name": LONG, "host": HOSTILE})
    change_tags(LocalStore(path).job(f"{JOB:x}").folder, lambda _: (HOSTILE, LONG))
    write_host(path, [{"t_ns": START_NS, "cpus": 8}])
    return path
