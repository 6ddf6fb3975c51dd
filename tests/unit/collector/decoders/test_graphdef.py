"""Decoding of GraphDefs into rows, one per node."""

import pytest
from tfprof.collector.decoders.graphdef import ATTRIBUTE_MAX, graph_nodes
from tfprof.collector.decoders.proto.graph_pb2 import AttrValue, GraphDef, NodeDef
from tfprof.collector.errors import DecodeError
from tfprof.collector.store.schema import GRAPH_NODES


def _graph(*nodes: NodeDef) -> bytes:
    return GraphDef(node=nodes).SerializeToString()


def test_nodes_are_kept_in_their_order() -> None:
    nodes = [NodeDef(name="b", op="Mul", input=["a", "^c"], device="/cpu:0"), NodeDef(name="a", op="Const")]
    batch = graph_nodes(_graph(*nodes), 3)
    assert batch.schema == GRAPH_NODES
    assert batch.to_pylist() == [
        {"graph": 3, "name": "b", "op": "Mul", "device": "/cpu:0", "node_def": nodes[0].SerializeToString()},
        {"graph": 3, "name": "a", "op": "Const", "device": "", "node_def": nodes[1].SerializeToString()},
    ]


@pytest.mark.parametrize("field", ["tensor", "s"])
def test_large_attributes_are_left_out(field: str) -> None:
    node = NodeDef(name="a", op="Const")
    node.attr["value"].CopyFrom(AttrValue(**{field: bytes(ATTRIBUTE_MAX + 1)}))
    node.attr["small"].CopyFrom(AttrValue(**{field: bytes(ATTRIBUTE_MAX)}))
    node.attr["dtype"].type = 1
    (row,) = graph_nodes(_graph(node), 0).to_pylist()
    stored = NodeDef.FromString(row["node_def"])
    assert set(stored.attr) == {"small", "dtype"}
    assert stored.attr["small"] == node.attr["small"]


def test_unknown_fields_of_a_node_are_kept() -> None:
    unknown = b"\x32\x03abc"  # field 6: experimental_debug_info
    node = NodeDef(name="a").SerializeToString() + unknown
    (row,) = graph_nodes(b"\x0a" + bytes([len(node)]) + node, 0).to_pylist()
    assert row["node_def"].endswith(unknown)


def test_nodes_of_library_functions_are_ignored() -> None:
    assert graph_nodes(b"\x12\x03\x0a\x01a", 0).num_rows == 0
    assert graph_nodes(b"", 0).num_rows == 0


@pytest.mark.parametrize("data", [b"\xff", _graph(NodeDef(name="a"))[:-1], b"\x0a\x03\x0a\x01\xff"])
def test_other_data_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError, match="graph 5 is not a GraphDef"):
        graph_nodes(data, 5)
