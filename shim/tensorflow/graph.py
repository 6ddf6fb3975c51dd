"""Graphs: GraphDef bytes with output shapes and Python frames; each node is sent once."""

from __future__ import annotations

import json
import sys
from typing import Any, Iterator

from ...formats import layout
from ...formats.pb_wire import bytes_field, encode_varint, fields, varint
from .. import clock
from ..channel.ring import Channel
from ..try_lock import TryLock
from ..weak_table import WeakTable
from . import models, variables
from .variables import Sizes, sizes_of

#: Maximum bytes of an attribute. Larger ones are weights; they are left out, since readers need
#: shapes only.
ATTR_MAX = 4096
_NODE, _LIBRARY = 1, 2  # fields of a GraphDef
_ATTR = 5  # field of a NodeDef
_VARIABLE_OPS = ("VarHandleOp", "VariableV2", "Variable")
_SESSION = "tensorflow.python.client.session"

_sent_graphs: _SentGraphs | None = None


class _GraphState(object):
    """The sent parts of one graph."""

    __slots__ = ("is_refused", "known_keys", "library_size", "node_count", "number", "pending", "variables", "version")

    def __init__(self, number: int) -> None:
        self.number = number
        self.version = -1
        self.node_count = 0
        self.library_size = -1
        self.is_refused = False
        self.pending: bytes | None = None  # frames that did not fit into the ring yet
        self.variables: dict[str, dict[str, Sizes]] = {}  # nodes of unsent variables, by key in the frames record
        self.known_keys: dict[str, list[str]] = {}  # nodes of the variables found so far -> their keys

    def add(self, nodes_by_key: dict[str, dict[str, Sizes]]) -> None:
        """Add nodes of unsent variables."""
        for key, nodes in nodes_by_key.items():
            self.variables.setdefault(key, {}).update(nodes)


class _SentGraphs(object):
    """The graphs sent into one channel, held weakly."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.lock = TryLock()
        self.graphs = WeakTable()
        self.variables: dict[str, tuple[str, str]] = {}  # variables of functions -> their key and placeholder
        self.count = 0

    def state_of(self, graph: Any) -> _GraphState:
        """Return the state of ``graph``; a new one gets a number."""
        state: _GraphState | None = self.graphs.get(graph)
        if state is None:
            self.count += 1
            state = _GraphState(self.count)
            self.graphs.set(graph, state)
        return state


def ensure_sent(graph: Any, channel: Channel, call: Any = None) -> None:
    """Send the new parts of ``graph`` into ``channel``.

    ``call``: if the graph is that of a function, TensorFlow's function and its arguments, perhaps
    empty. The graphs of the function's callees are sent, too. The call is searched for models,
    whose weights are looked up. This never waits. If another thread holds the graph, or if the ring
    is full, a later call tries again.
    """
    global _sent_graphs
    sent_graphs = _sent_graphs
    if sent_graphs is None or sent_graphs.channel is not channel:
        sent_graphs = _sent_graphs = _SentGraphs(channel)
    hold = sent_graphs.lock.take()
    if hold is None:
        return
    try:
        graphs = [graph] if call is None else _reachable_graphs(graph)
        if call is not None:
            _add_parameters(graphs, sent_graphs, call)
        for each in graphs:
            _ensure_graph_sent(each, sent_graphs)
    finally:
        del hold


def _add_parameters(graphs: list[Any], sent_graphs: _SentGraphs, call: Any) -> None:
    """Add the parameters of those graphs of functions that are not sent yet."""
    states = [(each, sent_graphs.state_of(each)) for each in graphs]
    new_states = [(each, state) for each, state in states if state.version < 0]
    weights = models.Weights(models.referred_models(call) if new_states else [])
    for inner, state in reversed(new_states):  # innermost first: there the names of placeholders are most specific
        state.add(variables.captured_parameters(inner, sent_graphs.variables, weights))


def _reachable_graphs(graph: Any) -> list[Any]:
    graphs: dict[int, Any] = {}
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        if clock.identity(current) in graphs:
            continue
        graphs[clock.identity(current)] = current
        for function in list(getattr(current, "_functions", {}).values()):
            # In newer versions the attribute ``graph`` would make a graph from a definition.
            inner = getattr(function, "_cached_graph" if hasattr(function, "_cached_graph") else "graph", None)
            if hasattr(inner, "_lock"):
                waiting.append(inner)
    return list(graphs.values())


def _ensure_graph_sent(graph: Any, sent_graphs: _SentGraphs) -> None:
    """Send the new parts of one graph; the caller holds the lock of ``sent_graphs``."""
    state, lock = sent_graphs.state_of(graph), graph._lock
    if state.is_refused or lock._is_owned():
        return
    try:
        if lock.acquire(False) and (graph.version != state.version or state.pending is not None):
            _send(graph, state, sent_graphs.channel)
    finally:
        if lock._is_owned():  # an exception of the job's may come just before or after ``acquire``
            lock.release()


def _send(graph: Any, state: _GraphState, channel: Channel) -> None:
    """Put the graph's new nodes and their frames; the caller holds the graph's lock."""
    version = graph.version
    if version != state.version and state.pending is None:
        ops = graph.get_operations()[state.node_count :]
        raw = graph_def(graph)
        size = library_size(raw)
        data = b"".join(with_shapes(raw, state.node_count, shapes(ops), size != state.library_size))
        if not _put(channel, state, layout.GRAPH, data):
            return
        state.version, state.library_size = version, size
        state.node_count += len(ops)
        record = frames(ops)
        state.add(variables.changed_nodes(graph, state.known_keys))
        record.update(state.variables, first_stack=state.node_count - len(ops))  # at most one stack per op
        state.variables = {}
        state.pending = json.dumps(record, separators=(",", ":")).encode()
    if state.pending is not None and _put(channel, state, layout.FRAMES, state.pending):
        state.pending = None


def _put(channel: Channel, state: _GraphState, kind: int, data: bytes) -> bool:
    """Put one record of a graph; after a record that is too large, the graph is no longer sent."""
    if len(data) > channel.data_max:
        state.is_refused, state.pending = True, None
        text = "graph %d: a record of %d bytes, and the ring has room for %d"
        channel.report("graph-too-large", text % (state.number, len(data), channel.data_max))
        return False
    return channel.put(kind, data, step=state.number, start_mono=clock.mono(), start_real=clock.real())


def graph_def(graph: Any) -> bytes:
    """Return the GraphDef of ``graph`` as TensorFlow's C interface writes it: without shapes."""
    tf_session = sys.modules[_SESSION].tf_session
    buffer = tf_session.TF_NewBuffer()
    try:
        handle = graph._c_graph
        if hasattr(handle, "get"):
            with handle.get() as inner:
                tf_session.TF_GraphToGraphDef(inner, buffer)
        else:
            tf_session.TF_GraphToGraphDef(handle, buffer)
        return bytes(tf_session.TF_GetBuffer(buffer))
    finally:
        tf_session.TF_DeleteBuffer(buffer)


# -- shapes, written into the bytes: protobuf in Python would take ten times as long -------------


def library_size(raw: bytes) -> int:
    """Return the size of the functions in a GraphDef, in bytes."""
    return sum(end - start for number, start, _, end in fields(raw) if number == _LIBRARY)


def with_shapes(raw: bytes, first: int, known_shapes: dict[bytes, bytes], with_library: bool) -> Iterator[bytes]:
    """Yield the fields of a GraphDef: nodes from ``first`` on, with shapes; maybe the library."""
    index = 0
    for number, start, content, end in fields(raw):
        if number == _NODE:
            if index >= first:
                node = raw[content:end]
                if len(node) > ATTR_MAX:
                    node = without_weights(node)
                length, at = varint(node, 1)  # the first field is the name
                yield bytes_field(_NODE, node + known_shapes.get(node[at : at + length], b""))
            index += 1
        elif number != _LIBRARY or with_library:
            yield raw[start:end]


def without_weights(node: bytes) -> bytes:
    """Return the bytes of a NodeDef without attributes larger than ATTR_MAX."""
    return b"".join(
        node[start:end] for number, start, _, end in fields(node) if number != _ATTR or end - start <= ATTR_MAX
    )


def shapes(ops: list[Any]) -> dict[bytes, bytes]:
    """Return node name -> bytes of the attribute `_output_shapes`, for ops that have outputs."""
    attributes: dict[tuple[Sizes, ...], bytes] = {}
    by_node: dict[bytes, bytes] = {}
    for op in ops:
        key = tuple(sizes_of(output.shape) for output in op.outputs)
        if not key:
            continue
        if key not in attributes:
            value = bytes_field(1, b"".join(bytes_field(7, shape_bytes(dims)) for dims in key))
            attributes[key] = bytes_field(_ATTR, bytes_field(1, b"_output_shapes") + bytes_field(2, value))
        by_node[op.name.encode()] = attributes[key]
    return by_node


def shape_bytes(dims: Sizes) -> bytes:
    """Return a TensorShapeProto of ``dims``: sizes, -1 unknown; None for an unknown rank."""
    if dims is None:
        return b"\x18\x01"
    return b"".join(bytes_field(2, b"\x08" + encode_varint(size & (1 << 64) - 1) if size else b"") for size in dims)


# -- frames --------------------------------------------------------------------------------------


def frames(ops: list[Any]) -> dict[str, Any]:
    """Return the frames in which the ops were created, in the form of docs/channel.md."""
    files: dict[str, int] = {}
    functions: dict[str, int] = {}
    rows: dict[tuple[int, int, int, int], int] = {}
    stacks: dict[tuple[int, ...], int] = {}
    trace_indices: dict[Any, int] = {}
    nodes: dict[str, int] = {}
    for op in ops:
        trace = op._traceback if hasattr(op, "_traceback") else op.traceback
        if trace is None:
            continue  # made by TensorFlow from another op's definition
        # Newer versions hash and compare a stack trace without making its frames.
        hash_method: Any = type(trace).__hash__
        has_own_hash = hash_method not in (None, object.__hash__)
        index = trace_indices.get(trace) if has_own_hash else None
        if index is None:
            stack = []
            for frame in trace:
                start = getattr(frame, "func_start_lineno", 0) or -1  # newer versions lack it
                file = files.setdefault(frame.filename, len(files))
                row = file, frame.lineno, functions.setdefault(frame.name, len(functions)), start
                stack.append(rows.setdefault(row, len(rows)))
            index = stacks.setdefault(tuple(stack), len(stacks))
            if has_own_hash:
                trace_indices[trace] = index
        nodes[op.name] = index
    starts = [start for _, _, _, start in rows]
    return {
        "files": list(files),
        "functions": list(functions),
        "frames": [row[:3] for row in rows],
        "stacks": list(stacks),
        "nodes": nodes,
        "variable_ops": [op.name for op in ops if op.type in _VARIABLE_OPS and op.name in nodes],
        **({"starts": starts} if max(starts, default=-1) > 0 else {}),
    }
