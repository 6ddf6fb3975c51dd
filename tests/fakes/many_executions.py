"""A job with three steps of overlapping executions, several of which begin together."""

from pathlib import Path

from fakes.made_store import START_NS, rows, span, write_job
from tfprof.collector.store import schema
from tfprof.formats import layout

CPU = b"/job:localhost/replica:0/task:0/device:CPU:0"


def write_many_executions(store: Path, uid: int = 1, state: str | None = "exited", **identity: object) -> None:
    """Write the job."""
    names = [(schema.NODE, number, b"node_%d" % number) for number in range(5)] + [(schema.DEVICE, 0, CPU)]
    ops = [
        {"trace": trace, "node": at % 5, "thread": at % 3, "start_ns": at // 3 * 700, "op_end_ns": 100 + at * 37 % 2500}
        for trace in range(3)
        for at in range(40)
    ]
    traces = [
        {"trace": number, "kind": layout.BATCH, "step": number + 7, "rows": 40, "source": layout.RUN_METADATA}
        | {"start_ns": START_NS + number * 5000, "base_ns": START_NS + number * 5000 + 10, "duration_ns": 9000}
        for number in range(3)
    ]
    graph = [{"name": f"node_{number}", "op": ("MatMul", "Add")[number % 2]} for number in range(5)]
    tables = {
        "ops": rows("ops", ops),
        "traces": rows("traces", traces),
        "names": rows("names", [{"kind": kind, "id": number, "text": text} for kind, number, text in names]),
        "graph_nodes": rows("graph_nodes", graph),
        "spans": rows("spans", [span(layout.BATCH, number, number, 1) for number in range(1, 12)]),
    }
    write_job(store, uid, tables, state=state, identity=identity)
