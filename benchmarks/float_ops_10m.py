"""The time that operation counts add to the op view of a job of 10 M node executions.

Each measurement is in a new process.

usage: benchmarks/float_ops_10m.py [--rows 10000000] [--processes 5] [--batches 1]
The job is that of op_view_10m.py, with recorded shapes. Its graph has matrix products and
element-wise ops of unknown batch size. ``--batches`` is the number of batch sizes, which alternate.
The result is the median. Limit: 250 ms.
"""

import argparse
import statistics
import time
from pathlib import Path

import _limits
import _processes
import op_view_10m
import pyarrow as pa
import pyarrow.compute as pc
from tfprof.collector.decoders.proto import graph_pb2
from tfprof.collector.query.facts import FLOAT_OPS
from tfprof.collector.query.job_selection import Selection
from tfprof.collector.query.profile import profile
from tfprof.collector.store import schema
from tfprof.collector.store.output_signatures import OpOutput, encode
from tfprof.collector.store.reader import LocalStore

LIMIT_MS = 250.0
OPS = ("MatMul", "BiasAdd", "Relu", "Identity")
WIDTH = 64
DT_FLOAT = 1


def shape(*sizes: int) -> graph_pb2.TensorShapeProto:
    return graph_pb2.TensorShapeProto(dim=[graph_pb2.TensorShapeProto.Dim(size=size) for size in sizes])


def node_def(name: str, op: str, inputs: list[str]) -> bytes:
    node = graph_pb2.NodeDef(name=name, op=op, input=inputs)
    node.attr["_output_shapes"].list.shape.append(shape(-1, WIDTH))
    return node.SerializeToString()


def graph(batches: int) -> dict[str, pa.Table]:
    """Return the tables of op_view_10m with a cycle of ops; all products have the same weights."""
    tables = op_view_10m.graph()
    names = tables["graph_nodes"]["name"].to_pylist()
    ops = [OPS[at % len(OPS)] for at in range(len(names))]
    inputs = [
        [names[at - 1], "weights"] if op in {"MatMul", "BiasAdd"} else [names[at - 1]] for at, op in enumerate(ops)
    ]
    weights = graph_pb2.NodeDef(name="weights", op="VariableV2")
    weights.attr["_output_shapes"].list.shape.append(shape(WIDTH, WIDTH))
    columns = {
        "graph": [0] * (len(names) + 1),
        "name": [*names, "weights"],
        "op": [*ops, "VariableV2"],
        "device": [""] * (len(names) + 1),
        "node_def": [*map(node_def, names, ops, inputs), weights.SerializeToString()],
    }
    signatures = [
        encode([OpOutput(0, DT_FLOAT, shape(32 + batch, WIDTH).SerializeToString(), True, True)])
        for batch in range(batches)
    ]
    signature_names = {"kind": [schema.OUTPUTS] * batches, "id": range(batches), "text": signatures}
    return {
        "names": pa.concat_tables([tables["names"], pa.table(signature_names, schema=schema.NAMES)]),
        "graph_nodes": pa.table(columns, schema=schema.GRAPH_NODES),
    }


def write(store: Path, args: argparse.Namespace) -> None:
    """Write the job."""
    template = op_view_10m.appended_rows()
    at = schema.OPS.get_field_index("outputs")
    batch = pc.subtract(template["trace"], pc.multiply(pc.divide(template["trace"], args.batches), args.batches))
    template = template.set_column(at, schema.OPS.field("outputs"), batch.cast(pa.uint32()))
    op_view_10m.write(store, args, graph(args.batches), template)


def measure(store: str) -> dict[str, float]:
    """Return the additional time of operation counts (ms), and the number of operations."""
    job = LocalStore(store).job("last")
    times_ms = []
    for required_facts in ((), {FLOAT_OPS}):
        before = time.perf_counter()
        job_profile = profile(Selection((job,)), required_facts=required_facts, averaged=False)
        times_ms.append((time.perf_counter() - before) * 1000)
    return {"ms": times_ms[1] - times_ms[0], "ops": sum(node.stats.float_ops for node in job_profile.nodes)}


def main() -> None:
    """Write a job and read it in new processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--batches", type=int, default=1)
    args, results = _processes.run_in_processes(__file__, parser, write, measure)
    median_ms = statistics.median(result["ms"] for result in results)
    print(f"operation counts of {args.rows:,} executions, {args.batches} batch sizes: {results[0]['ops']:,} operations")
    _limits.report([("added to the op view", median_ms, "ms", LIMIT_MS)])


if __name__ == "__main__":
    main()
