"""Decodes a GraphDef into rows of `graph_nodes`.

The rows are the nodes of the main graph. Large attributes can be left out.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

import pyarrow as pa
from google.protobuf.message import DecodeError as ParseError

from ...formats.pb_wire import InvalidMessageError, field_contents
from ..errors import DecodeError
from ..store.schema import GRAPH_NODES
from .columns import from_columns
from .proto.graph_pb2 import GraphDef, NodeDef

#: Maximum bytes of a tensor or string attribute in `node_def`; larger ones are left out.
ATTRIBUTE_MAX: Final = 1024
_NODE_FIELD: Final = GraphDef.NODE_FIELD_NUMBER
#: Number of nodes that are parsed together: a parsed node takes ten times the memory of its bytes.
_BATCH_NODES: Final = 1024


def graph_nodes(data: bytes | memoryview, graph: int, attribute_max: int | None = ATTRIBUTE_MAX) -> pa.Table:
    """Return the GRAPH_NODES rows of graph number ``graph``.

    Tensor and string attributes above ``attribute_max`` bytes are left out; None keeps all.
    DecodeError if ``data`` is not a GraphDef.
    """
    try:
        nodes = field_contents(memoryview(data), _NODE_FIELD)
        batches = []
        while batch := [NodeDef.FromString(bytes(node)) for node in islice(nodes, _BATCH_NODES)]:
            batches.append(_rows(batch, graph, attribute_max))
    except (InvalidMessageError, ParseError) as error:
        raise DecodeError(f"graph {graph} is not a GraphDef") from error
    return pa.Table.from_batches(batches, GRAPH_NODES)


def _rows(nodes: Sequence[NodeDef], graph: int, attribute_max: int | None) -> pa.RecordBatch:
    columns = (
        [graph] * len(nodes),
        [node.name for node in nodes],
        [node.op for node in nodes],
        [node.device for node in nodes],
        [_definition(node, attribute_max) for node in nodes],
    )
    return from_columns(columns, "graph_nodes")


def _definition(node: NodeDef, attribute_max: int | None) -> bytes:
    if attribute_max is not None and node.ByteSize() > attribute_max:
        large = [key for key, value in node.attr.items() if max(len(value.tensor), len(value.s)) > attribute_max]
        for key in large:
            del node.attr[key]
    return node.SerializeToString(deterministic=True)
