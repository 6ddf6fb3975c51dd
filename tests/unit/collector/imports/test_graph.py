"""Import of GraphDef files: all attributes are kept, other files are refused."""

import pytest
from tfprof.collector.imports.files import BadFileError
from tfprof.collector.imports.graph import graph
from tfprof.collector.proto.tensorflow_pb2 import GraphDef, RunMetadata
from tfprof.collector.proto.tfprof_log_pb2 import OpLogProto, ProfileProto


def large_graph() -> GraphDef:
    """Return a graph with large attributes.

    It also has fields that decoders/proto/graph.proto does not declare.
    """
    message = GraphDef()
    node = message.node.add(name="weights", op="Const")
    node.attr["value"].tensor.tensor_content = bytes(5000)
    node.attr["f"].func.name = "branch"
    node.attr["p"].placeholder = "T"
    node.attr["tensors"].list.tensor.add().float_val.append(1.5)
    message.library.function.add().signature.name = "branch"
    return message


@pytest.mark.parametrize("format_", ["binary", "text"])
def test_all_attributes_are_kept_however_large(format_: str) -> None:
    message = large_graph()
    rows = graph(message.SerializeToString() if format_ == "binary" else str(message).encode(), "g").to_pylist()
    assert [(row["name"], row["op"]) for row in rows] == [("weights", "Const")]
    stored = GraphDef.FromString(b"\x0a" + _with_length(rows[0]["node_def"])).node[0]
    assert stored == message.node[0]


def _with_length(data: bytes) -> bytes:
    size, head = len(data), bytearray()
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*head, size]) + data


def _profile() -> ProfileProto:
    profile = ProfileProto()
    profile.nodes[0].name, profile.nodes[0].op = b"a", b"b"
    return profile


@pytest.mark.parametrize(
    "message",
    [
        GraphDef(),
        GraphDef(node=[{"name": "a"}]),
        GraphDef(node=[{"op": "a"}]),
        _profile(),
        RunMetadata(step_stats={"dev_stats": [{"device": "d"}]}),
        OpLogProto(log_entries=[{"name": b"a", "float_ops": 3}]),
    ],
)
def test_other_files_are_refused(message: GraphDef) -> None:
    with pytest.raises(BadFileError, match="g is not a valid GraphDef"):
        graph(message.SerializeToString(), "g")
