"""Builds nodes and rollups for tests."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from tfprof.collector.store.schema import DEVICE, GRAPH_NODES, NAMES, NODE, NONE_ID, ROLLUP
from tfprof.collector.tfviews.nodes import Frame, Node, Stats

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
STREAM = "/device:GPU:0/stream:all"


def node(name: str, op: str, device: str = CPU.lower(), **stats: int) -> Node:
    """Return a node with the counters ``stats``."""
    return Node(name, op, (device,) if device else (), Stats(**stats))


def with_stack(node: Node, *stack: Frame) -> Node:
    """Return ``node`` with ``stack`` as the Python stack that created it."""
    return node._replace(facts=replace(node.facts, stack=stack))


def rollup(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return a ROLLUP table; columns that a row leaves out are 0."""
    fill = dict.fromkeys(ROLLUP.names, 0) | {"canonical": NONE_ID}
    return pa.Table.from_pylist([{**fill, **row} for row in rows], schema=ROLLUP)


def node_row(number: int, traces: int, canonical: int = NONE_ID) -> dict[str, int]:
    """Return the row of a whole node: the number of its traces, and its canonical device."""
    return {"node": number, "device": NONE_ID, "traces": traces, "canonical": canonical}


def names(nodes: Iterable[str], devices: Iterable[str]) -> pa.Table:
    """Return NAMES with ids in the order given."""
    rows = [(NODE, number, text.encode()) for number, text in enumerate(nodes)]
    rows += [(DEVICE, number, text.encode()) for number, text in enumerate(devices)]
    return pa.Table.from_pylist([dict(zip(NAMES.names, row, strict=True)) for row in rows], schema=NAMES)


def graph(*nodes: tuple[str, str]) -> pa.Table:
    """Return GRAPH_NODES of (name, op)."""
    rows = [{"graph": 0, "name": name, "op": op, "device": "", "node_def": b""} for name, op in nodes]
    return pa.Table.from_pylist(rows, schema=GRAPH_NODES)
