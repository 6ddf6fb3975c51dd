"""Converts a GraphDef file into rows of `graph_nodes`, with all attributes."""

import pyarrow as pa

from ..decoders.graphdef import graph_nodes
from ..errors import DecodeError
from ..proto.tensorflow_pb2 import GraphDef
from ..store.columns import column_list
from .files import TEXT, BadFileError, is_text, parse


def graph(data: bytes, path: str) -> pa.RecordBatch:
    """Return the nodes of the GraphDef in ``data``, text or binary.

    BadFileError if ``data`` is neither, has no nodes, or has a node without a name or a type.
    """
    if is_text(data):
        data = parse(data, GraphDef, path, (TEXT,)).SerializeToString()
    return nodes(data, path)


def nodes(data: bytes, path: str) -> pa.RecordBatch:
    """Return the nodes of the binary GraphDef in ``data``.

    BadFileError if it is invalid, has no nodes, or has a node without a name or a type.
    """
    try:
        rows = graph_nodes(data, 0, attribute_max=None)
    except DecodeError:
        raise BadFileError(f"{path} is not a valid GraphDef: its bytes do not parse as one") from None
    if not rows.num_rows:
        raise BadFileError(f"{path} is not a valid GraphDef: it has no nodes")
    if "" in column_list(rows, "name") or "" in column_list(rows, "op"):
        raise BadFileError(f"{path} is not a valid GraphDef: it has nodes without a name or a type")
    return rows.combine_chunks().to_batches()[0]
