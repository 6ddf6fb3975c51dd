"""The op view of a job of 10 M node executions: time from the store to the view's entries.

The job is read in a new process. The scope view, the executions of one traced step, and the sums
over most steps are measured after the op view.

usage: benchmarks/op_view_10m.py [--rows 10000000] [--processes 5]
The job is written through the collector's own writer. The last rows, two fifths of a generation,
stay in the write-ahead log.
Each process imports what the command imports, and reads and aggregates once. The results are
medians. Limits: 100 ms, without the start of the interpreter; 400 ms for a range of steps.
"""

import argparse
import random
import statistics
import time
from pathlib import Path

import _limits
import _processes
import psutil
import pyarrow as pa
import pyarrow.compute as pc
from tfprof.collector.query.job_selection import Selection
from tfprof.collector.query.profile import profile
from tfprof.collector.query.step_entries import read_entries
from tfprof.collector.store import schema
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.collector.tfviews.op import op_view
from tfprof.collector.tfviews.options import Options
from tfprof.collector.tfviews.tree import scope_view

#: The measured times: name, key of the result, limit in ms.
TIMES = (
    ("op view", "ms", 100.0),
    ("scope view", "scope_ms", 100.0),
    ("one step", "step_ms", 100.0),
    ("many steps", "steps_ms", 400.0),
)
NODES, OP_TYPES, TRACES_AN_APPEND = 1_500, 60, 16
BASE_NS = 1_700_000_000_000_000_000
STEP_NS = 1_000_000_000
UID = 1


def appended_rows() -> pa.Table:
    """Return the rows of some traces: times differ between traces, sizes between nodes."""
    source = random.Random(1)
    typical_ns = [source.lognormvariate(10, 1.8) for _ in range(NODES)]
    sizes = [source.choice([0, 0, 4, 256, 65_536, int(source.lognormvariate(14, 2))]) for _ in range(NODES)]
    rows = []
    for trace in range(TRACES_AN_APPEND):
        start = 0
        for node in range(NODES):
            duration = int(typical_ns[node] * source.lognormvariate(0, 0.3))
            start += duration // 3 + source.randrange(500)
            rows.append((trace, node, source.randrange(8), start, source.randrange(200, 3000), duration, sizes[node]))
    names = ("trace", "node", "thread", "start_ns", "op_start_ns", "op_end_ns", "total_bytes")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    columns |= {"label": columns["node"], "output_bytes": columns["total_bytes"], "peak_bytes": columns["total_bytes"]}
    zeros = [0] * len(rows)
    return pa.table({name: columns.get(name, zeros) for name in schema.OPS.names}, schema=schema.OPS)


def traces(first: int) -> pa.Table:
    numbers = range(first, first + TRACES_AN_APPEND)
    starts = [BASE_NS + number * STEP_NS for number in numbers]
    columns = {"trace": numbers, "step": numbers, "base_ns": starts, "start_ns": starts}
    columns |= {"rows": [NODES] * TRACES_AN_APPEND}
    zeros = [0] * TRACES_AN_APPEND
    return pa.table({name: columns.get(name, zeros) for name in schema.TRACES.names}, schema=schema.TRACES)


def graph() -> dict[str, pa.Table]:
    """Return the names of nodes and device, and the graph with the type of each node."""
    nodes = [f"model/block_{node % 40}/layer_{node}/Op" for node in range(NODES)]
    kinds = [schema.DEVICE, *[schema.NODE] * NODES]
    texts = ["/job:localhost/replica:0/task:0/device:CPU:0", *nodes]
    ids = [0, *range(NODES)]
    columns = {"graph": [0] * NODES, "name": nodes, "op": [f"Op{node % OP_TYPES}" for node in range(NODES)]}
    columns |= {"device": [""] * NODES, "node_def": [b""] * NODES}
    return {
        "names": pa.table({"kind": kinds, "id": ids, "text": [text.encode() for text in texts]}, schema=schema.NAMES),
        "graph_nodes": pa.table(columns, schema=schema.GRAPH_NODES),
    }


def write(
    store: Path, args: argparse.Namespace, tables: dict[str, pa.Table] | None = None, template: pa.Table | None = None
) -> None:
    """Write the job, by default of `graph` and `appended_rows`, and print the speed of writing."""
    template = template or appended_rows()
    appends = args.rows // template.num_rows + 1
    writer = LocalStoreWriter(store, "benchmark")
    job = writer.job(UID)
    job.set_identity({"name": "benchmark"})
    job.append(tables or graph())
    cpu_s = 0.0
    for number in range(appends):
        first = number * TRACES_AN_APPEND
        ops = template.set_column(0, "trace", pc.add(template["trace"], pa.scalar(first, pa.uint32())))
        before = time.process_time()
        job.append({"ops": ops, "traces": traces(first)}, 3, number + 1)
        job.seal_if_due(time.monotonic())
        cpu_s += time.process_time() - before
    count = appends * template.num_rows
    writer.close()
    print(f"wrote {count:,} rows in {job.info.sealed + 1} generations, {count / cpu_s / 1e6:.2f} M rows / CPU-s")


def measure(store: str) -> dict[str, float]:
    """Return the times (ms), and the resident memory after the op view (MB)."""
    before = time.perf_counter()
    job = LocalStore(store).job("last")
    job_profile = profile(Selection((job,)), required_facts=())
    view = op_view(job_profile.nodes, Options())
    op_view_s = time.perf_counter() - before
    runs = sum(node.stats.runs for node in job_profile.nodes)
    resident = psutil.Process().memory_info().rss / 1e6
    before = time.perf_counter()
    scope_view(profile(Selection((job,)), required_facts=()).nodes, Options())
    scope_s = time.perf_counter() - before
    before = time.perf_counter()
    assert len(read_entries(job, [job_profile.trace_count // 2])) == NODES
    step_s = time.perf_counter() - before
    most_steps = range(37, job_profile.trace_count * 3 // 4)
    before = time.perf_counter()
    assert sum(job.rollup(most_steps)["runs"].to_pylist()) == len(most_steps) * NODES
    steps_s = time.perf_counter() - before
    times_ms = {
        "ms": op_view_s * 1000,
        "scope_ms": scope_s * 1000,
        "step_ms": step_s * 1000,
        "steps_ms": steps_s * 1000,
    }
    return times_ms | {"mb": resident, "runs": runs, "entries": len(view.entries), "traces": job_profile.trace_count}


def main() -> None:
    """Write a job and read it in new processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    _, results = _processes.run_in_processes(__file__, parser, write, measure)
    peak_mb = max(result["mb"] for result in results)
    print(f"op view of {results[0]['traces']:,} traces, {results[0]['entries']} entries, {peak_mb:.0f} MB resident")
    _limits.report(
        (name, statistics.median(result[key] for result in results), "ms", limit) for name, key, limit in TIMES
    )


if __name__ == "__main__":
    main()
