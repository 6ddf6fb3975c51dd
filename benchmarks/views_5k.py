"""The four views of a job with a graph of 5,000 nodes: time from the store to the view's entries.

Each measurement is in a new process.

usage: benchmarks/views_5k.py [--nodes 5000] [--processes 5]
Each node has two inputs and a stack of twelve frames. The ten outer frames are the same for all
nodes. The next frame is the same for a layer of 40 nodes, and the innermost frame is one of three
lines. Ten steps are traced. Each process imports what the command imports, and reads and aggregates
each view once, the code view first. The results are medians. Limit: 300 ms for the code view.
"""

import argparse
import statistics
import time
from pathlib import Path

import _limits
import _processes
import pyarrow as pa
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.query.engine import QueryEngine
from tfprof.collector.query.job_selection import Selection
from tfprof.collector.store import schema
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.collector.tfviews.options import Options

CODE_LIMIT_MS = 300.0
UID, TRACES, LAYER, DEPTH = 1, 10, 40, 12
BASE_NS = 1_700_000_000_000_000_000
ORDER = ("code", "scope", "graph", "op")


def name(number: int) -> str:
    return f"model/block_{number // LAYER}/layer_{number}/Op"


def node_def(number: int) -> bytes:
    inputs = [name(source) for source in (number - 1, number - LAYER) if source >= 0]
    return graph_pb2.NodeDef(name=name(number), op=f"Op{number % 60}", input=inputs).SerializeToString()


def stack(number: int) -> list[tuple[str, int, str]]:
    """Return the frames of stack ``number``, outermost first.

    First come the frames that all stacks share, then the frame of the layer, then one of the three
    lines of a layer.
    """
    outer = [(f"train_{depth}.py", 10 * depth, f"run_{depth}") for depth in range(DEPTH - 2)]
    return [*outer, ("model.py", 100 + number // 3, f"block_{number // 3}"), ("layers.py", 5 + number % 3, "call")]


def tables(nodes: int) -> dict[str, pa.Table]:
    """Return names, graph and stacks."""
    numbers = range(nodes)
    names = [name(number) for number in numbers]
    stacks = 3 * (nodes // LAYER + 1)
    frames = [(number, position, *frame) for number in range(stacks) for position, frame in enumerate(stack(number))]
    columns = dict(zip(("stack", "position", "file", "line", "function"), zip(*frames, strict=True), strict=True))
    columns |= {"graph": [0] * len(frames), "start_line": [1] * len(frames), "text": [""] * len(frames)}
    graph_columns = {
        "graph": [0] * nodes,
        "name": names,
        "op": [f"Op{number % 60}" for number in numbers],
        "device": [""] * nodes,
    }
    kinds = [schema.DEVICE, *[schema.NODE] * nodes]
    texts = [b"/job:localhost/replica:0/task:0/device:CPU:0", *(text.encode() for text in names)]
    stack_columns = {
        "graph": [0] * nodes,
        "name": names,
        "stack": [3 * (number // LAYER) + number % 3 for number in numbers],
    }
    return {
        "names": pa.table({"kind": kinds, "id": [0, *numbers], "text": texts}, schema=schema.NAMES),
        "graph_nodes": pa.table({**graph_columns, "node_def": [*map(node_def, numbers)]}, schema=schema.GRAPH_NODES),
        "frames": pa.table({key: columns[key] for key in schema.FRAMES.names}, schema=schema.FRAMES),
        "stacks": pa.table(stack_columns, schema=schema.STACKS),
    }


def step(trace: int, nodes: int) -> dict[str, pa.Table]:
    """Return the rows of one traced step, in which each node runs once."""
    numbers = range(nodes)
    columns = {"trace": [trace] * nodes, "node": numbers, "label": numbers, "start_ns": range(0, nodes * 1000, 1000)}
    columns |= {"op_end_ns": [20_000 + number % 977 * 1000 for number in numbers], "outputs": [schema.NONE_ID] * nodes}
    zeros = [0] * nodes
    ops = pa.table({key: columns.get(key, zeros) for key in schema.OPS.names}, schema=schema.OPS)
    trace_row = {"trace": trace, "step": trace, "base_ns": BASE_NS, "rows": nodes}
    return {
        "ops": ops,
        "traces": pa.table({key: [trace_row.get(key, 0)] for key in schema.TRACES.names}, schema=schema.TRACES),
    }


def write(store: Path, args: argparse.Namespace) -> None:
    """Write the job."""
    writer = LocalStoreWriter(store, "benchmark")
    job = writer.job(UID)
    job.set_identity({"name": "benchmark"})
    job.append(tables(args.nodes))
    for trace in range(TRACES):
        job.append(step(trace, args.nodes), 3, trace + 1)
    job.close("ended")
    writer.close()


def measure(store: str) -> dict[str, tuple[float, int]]:
    """Return the time (ms) and the number of entries of each view."""
    results = {}
    for view in ORDER:
        before = time.perf_counter()
        answer = QueryEngine().ask(Selection((LocalStore(store).job("last"),)), view, Options())
        view_ms = (time.perf_counter() - before) * 1000
        results[view] = view_ms, len(answer.folded.entries) if view == "op" else answer.tree.accounted_entries
    return results


def main() -> None:
    """Write a job and read it in new processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    _, results = _processes.run_in_processes(__file__, parser, write, measure)
    medians_ms = {view: statistics.median(result[view][0] for result in results) for view in ORDER}
    for view, median_ms in medians_ms.items():
        print(f"{view:5} view {median_ms:6.1f} ms of {results[0][view][1]:,} entries")
    _limits.report([("code view", medians_ms["code"], "ms", CODE_LIMIT_MS)])


if __name__ == "__main__":
    main()
