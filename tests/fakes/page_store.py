"""A store whose texts are HTML, scripts and formulas, with everything that the page shows."""

from pathlib import Path
from typing import Any, Final

from fakes import ended_jobs
from fakes.made_store import IDENTITY, MS, SECOND, START_NS, rows, span, trace_tables, write_host, write_job
from fakes.run_metadata import run_metadata
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.store import schema
from tfprof.collector.store.catalog import change_tags
from tfprof.collector.store.reader import LocalStore
from tfprof.formats import layout

#: Texts that would run a script, end an element, or be a formula.
SCRIPT: Final = "<img src=x onerror=\"document.title='x'\"></script><script>document.title='x'</script>"
FORMULA: Final = "=HYPERLINK(1)|`*x*`"
JOBS: Final = (0xAA10000000000001, 0xBB10000000000002)
_NODE: Final = f"scope/{SCRIPT}/node"


def _tables(slower: int) -> dict[str, Any]:
    nodes = [
        graph_pb2.NodeDef(name=_NODE, op=SCRIPT),
        graph_pb2.NodeDef(name="net/MatMul", op="MatMul", input=[_NODE]),
        graph_pb2.NodeDef(name="net/Relu", op="Relu", input=["net/MatMul"]),
    ]
    names = [node.name.encode() for node in nodes]
    steps = [run_metadata(names) for _ in range(3)]
    frame = {"file": f"/src/{SCRIPT}.py", "line": 3, "function": SCRIPT, "text": SCRIPT}
    spans = [span(layout.FIT, 1, 0, 9_000), span(layout.EPOCH, 1, 0, 4_000), span(layout.EPOCH, 2, 4_000, 4_000)]
    spans += [span(layout.RUN, number, number * 100, 50 + number % 7 + slower) for number in range(1, 81)]
    samples = [
        {"t_ns": START_NS + at * SECOND, "cpu_user_s": 1.5 * at, "rss_bytes": 10**9 + at * 10**7, "processes": 1}
        for at in range(10)
    ]
    blocks = [
        {"trace": 1, "node": node, "t_us": START_NS // 1000 + 10 + node, "bytes": size, "use": schema.OUTPUT_BLOCK}
        for node, size in enumerate((4 * 10**6, 3 * 10**6))
    ]
    programs = [
        {"module": SCRIPT, "node": node, "op": op, "fused_into": into, "instructions": 1}
        for node, op, into in (("net/MatMul", "MatMul", ""), (SCRIPT, SCRIPT, _NODE))
    ]
    return {
        **trace_tables(graph_pb2.GraphDef(node=nodes).SerializeToString(), steps),
        "memory_changes": rows("memory_changes", blocks),
        "frames": rows("frames", [frame | {"stack": 0}]),
        "stacks": rows("stacks", [{"name": node.name} for node in nodes]),
        "programs": rows("programs", programs),
        "spans": rows("spans", spans),
        "samples": rows("samples", samples),
        "events": rows("events", [{"t_ns": START_NS, "slug": "gap", "text": SCRIPT, "count": 2}]),
        "alerts": rows(
            "alerts",
            [{"found_ns": START_NS + 3 * SECOND, "slug": "stall", "kind": layout.RUN, "step": 9, "before": 5e8}],
        ),
    }


def write(path: Path) -> Path:
    """Write the store with two ended jobs and return its path."""
    counters = {**ended_jobs.COUNTERS, "counts": {"run": 80}, "times": {"run": 80 * 50 * MS}, "traced": 3}
    for at, uid in enumerate(JOBS):
        identity = {**IDENTITY, "name": (SCRIPT, FORMULA)[at], "host": SCRIPT, "user": SCRIPT}
        write_job(path, uid, _tables(at * 20), identity=identity, counters=counters, end={**counters, "status": 0})
    change_tags(LocalStore(path).job(f"{JOBS[0]:x}").folder, lambda _: (SCRIPT, FORMULA))
    write_host(path, [{"t_ns": START_NS + n * SECOND, "cpus": 8, "cpu_busy_s": 3.0 * n} for n in range(40)])
    return path
