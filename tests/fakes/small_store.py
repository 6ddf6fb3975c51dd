"""A small store: two jobs of a small net, on different hosts, and a job without a traced step."""

from pathlib import Path

from fakes.made_store import trace_tables, write_job
from fakes.run_metadata import run_metadata
from tfprof.collector.decoders.proto import graph_pb2

FIRST_JOB, SECOND_JOB, UNTRACED_JOB = 0xAA10000000000001, 0xBB10000000000002, 0xCC10000000000003
GPU = b"/job:localhost/replica:0/task:0/device:GPU:0"
SHAPE = graph_pb2.TensorShapeProto(dim=[{"size": 2}, {"size": 3}])
GRAPH = graph_pb2.GraphDef(
    node=[
        graph_pb2.NodeDef(
            name="net/weights",
            op="VariableV2",
            attr={
                "shape": graph_pb2.AttrValue(shape=SHAPE),
                "_output_shapes": graph_pb2.AttrValue(list=graph_pb2.AttrValue.ListValue(shape=[SHAPE])),
            },
        ),
        graph_pb2.NodeDef(name="net/images", op="Placeholder"),
        graph_pb2.NodeDef(name="net/MatMul", op="MatMul", input=["net/images", "net/weights"]),
        graph_pb2.NodeDef(name="loss", op="Mean", input=["net/MatMul"]),
    ]
)


def write(path: Path) -> Path:
    """Write the store and return its path.

    The first job has the traced steps 0 and 1. The second job has the traced step 0, which ran on a
    GPU.
    """
    names = [b"net/weights", b"net/MatMul", b"loss"]
    first = trace_tables(GRAPH.SerializeToString(), [run_metadata(names), run_metadata(names[1:])])
    second = trace_tables(GRAPH.SerializeToString(), [run_metadata(names[1:2], device=GPU)])
    write_job(path, FIRST_JOB, first, identity={"name": "train.py", "host": "node7", "pid": 1})
    write_job(path, SECOND_JOB, second, identity={"name": "train.py", "host": "node8", "pid": 2})
    write_job(path, UNTRACED_JOB, {}, identity={"name": "idle.py", "host": "node8", "pid": 3})
    return path
