"""Python stacks of nodes. The stack of a gradient's forward op shows the user's line.

Forward ops are found by the names, stacks and inputs of the ops.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ..store.columns import changes, flat, integer, integers, pc, row_numbers, row_tuples
from .nodes import Frame

#: Columns of FRAMES that are read.
FRAME_COLUMNS: Final = ("graph", "stack", *Frame._fields)
#: Upper bound of the stacks in a graph; the factor that packs graph and stack into one number.
_STACKS_MAX: Final = 1 << 32
#: Upper bound of the numbers that pack several columns; larger numbers would not fit in 64 bits.
_PACKED_MAX: Final = 1 << 62


def stacks(frames: pa.Table, nodes: pa.Table) -> dict[str, tuple[Frame, ...]]:
    """Return the stack of each node by name, outermost frame first.

    ``frames`` and ``nodes``: rows of FRAMES and STACKS in order of arrival. If nodes of several
    graphs have one name, the first is used. Nodes with the same graph and stack number share one
    tuple. Equal frames are one object.
    """
    by_number = _stacks_by_number(frames) if frames.num_rows else {}
    by_name: dict[str, tuple[Frame, ...]] = {}
    for name, graph, stack in row_tuples(nodes, "name", "graph", "stack"):
        if name not in by_name:
            by_name[name] = by_number.get(graph * _STACKS_MAX + stack, ())
    return by_name


def _stacks_by_number(table: pa.Table) -> dict[int, tuple[Frame, ...]]:
    """Return the frames of each stack, by graph * _STACKS_MAX + stack."""
    frames, frame_ids = _distinct_frames(table)
    rows = list(map(frames.__getitem__, integers(frame_ids)))
    graph, stack = (flat(table[name]).cast(pa.uint64()) for name in ("graph", "stack"))
    numbers = pc.add(pc.multiply(graph, pa.scalar(_STACKS_MAX, pa.uint64())), stack)
    runs = pc.run_end_encode(numbers, run_end_type=pa.int64())
    ends = integers(runs.run_ends)
    starts = [0, *ends[:-1]]
    spans = zip(runs.values.to_pylist(), starts, ends, strict=True)
    return {number: tuple(rows[start:end]) for number, start, end in spans}


def _distinct_frames(table: pa.Table) -> tuple[list[Frame], Any]:
    """Return the distinct frames, and for each row the index of its frame."""
    frame_ids, combinations = pc.multiply(row_numbers(table.num_rows), integer(0)), 1
    for name in Frame._fields:
        codes = flat(table[name]).dictionary_encode()
        size = len(codes.dictionary)
        if combinations * size >= _PACKED_MAX:
            frame_ids, combinations = _renumbered(frame_ids), table.num_rows
        frame_ids, combinations = (
            pc.add(pc.multiply(frame_ids, integer(size)), _int64(codes.indices)),
            combinations * size,
        )
    frame_ids = _renumbered(frame_ids)
    is_first = changes(pc.cumulative_max(frame_ids))  # a new frame has the highest number so far
    rows = table.select(list(Frame._fields)).filter(is_first)
    return list(map(Frame, *(column.to_pylist() for column in rows.columns))), frame_ids


def _renumbered(numbers: Any) -> Any:
    """Return 0, 1, … for the distinct ``numbers`` in order of appearance."""
    return _int64(numbers.dictionary_encode().indices)


def _int64(column: Any) -> Any:
    return flat(column).cast(pa.int64())


Stack = tuple[Frame, ...]

#: Name of an op of tf.gradients; the group is the name of its forward op.
_NAMED: Final = re.compile(r"(?:.*/)?gradients(?:_\d+)?/(.+?)_grad/.*", re.DOTALL)
#: Scope of the gradients of a GradientTape. It contains the scope in which the forward op was
#: created, not the forward op's name.
_TAPE: Final = "gradient_tape/"
#: Function of TensorFlow that calls the function for one op's gradient, such as `_Conv2DGrad`.
_CALLER: Final = "_gradient_function"
#: Parts that the name of such a function has in addition to the op type, or the op type in addition
#: to the name.
_NOT_KIND: Final = re.compile(r"^_|^Stateless|Grad|V\d+$")
#: Stands for any graph.
_ANY: Final = -1
_NUMBER: Final = re.compile(r"_\d+$")


class GraphOp(NamedTuple):
    """An op of a graph; ``graph`` is the number of the graph, ``op`` the op type."""

    graph: int
    name: str
    op: str


class _Gradient(NamedTuple):
    """A gradient of a tape, the ops that may be its forward op, and the call of the tape."""

    op: GraphOp
    candidates: tuple[str, ...]
    call: Stack


#: Returns the names of the inputs of an op, by the number of its graph and its name.
InputsOf = Callable[[int, str], Sequence[str]]


def forward_ops(ops: Iterable[GraphOp], stacks: Mapping[str, Stack], inputs_of: InputsOf) -> dict[str, str]:
    """Return the name of the forward op of each gradient that has one with a stack.

    ``ops`` are in the order in which they were created. A gradient for which several ops may be the
    forward op has no forward op.
    """
    with_stack = [op for op in ops if op.name in stacks]
    forward: dict[str, str] = {}
    tape_ops = []
    for op in with_stack:
        match = _NAMED.fullmatch(op.name)
        if match is not None and match[1] in stacks:
            forward[op.name] = match[1]
        elif op.name.startswith(_TAPE):
            tape_ops.append(op)
    if tape_ops:
        scopes = _Scopes(op for op in with_stack if not op.name.startswith(_TAPE))
        gradients = list(_with_candidates(tape_ops, stacks, scopes))
        _add_by_inputs(forward, gradients, inputs_of)
        _add_by_order(forward, gradients)
    return forward


class _Scopes:
    """The ops of the forward pass by graph, scope and kind: the op type without version."""

    def __init__(self, ops: Iterable[GraphOp]) -> None:
        self._kinds: dict[tuple[int, str], str] = {}
        self._names: dict[tuple[int, str, str], list[str]] = {}
        for op in ops:
            scope, kind = op.name.rpartition("/")[0], _kind(op.op)
            for graph in (op.graph, _ANY):
                self._kinds[graph, op.name] = kind
                self._names.setdefault((graph, scope, kind), []).append(op.name)

    def candidates(self, graph: int, scope: str, kind: str) -> tuple[str, ...]:
        """Return the ops of ``kind`` in ``scope``, or in the nearest scope around it that has any.

        If an op has the name of the scope, only this op is returned. If the graph has no such op,
        ops of all graphs are returned; an example is the body of a loop's gradient.
        """
        return self._nearest(graph, scope, kind) or self._nearest(_ANY, scope, kind)

    def _nearest(self, graph: int, scope: str, kind: str) -> tuple[str, ...]:
        while True:
            if self._kinds.get((graph, scope)) == kind:
                return (scope,)
            if found := self._names.get((graph, scope, kind)):
                return tuple(found)
            if not scope:
                return ()
            scope = scope.rpartition("/")[0]


def _kind(name: str) -> str:
    """Return the kind in the name of an op type, or of a function for a gradient."""
    return _NOT_KIND.sub("", name)


def _with_candidates(tape_ops: Iterable[GraphOp], stacks: Mapping[str, Stack], scopes: _Scopes) -> Iterator[_Gradient]:
    for op in tape_ops:
        functions = [frame.function for frame in stacks[op.name]]
        if _CALLER in functions[:-1]:
            caller = len(functions) - 1 - functions[::-1].index(_CALLER)
            scope = op.name.removeprefix(_TAPE).rpartition("/")[0]
            candidates = scopes.candidates(op.graph, scope, _kind("".join(functions[caller + 1 : caller + 2])))
            yield _Gradient(op, candidates, stacks[op.name][:caller])


def _add_by_inputs(forward: dict[str, str], gradients: Iterable[_Gradient], inputs_of: InputsOf) -> None:
    """Add the only candidate of a gradient, or the only one that shares tensors with it.

    If several share tensors, it is the one whose output goes to an op whose gradient is an input of
    this gradient.
    """
    found: Sequence[str]
    for (graph, name, _), candidates, _ in gradients:
        if len(candidates) > 1:
            inputs = set(inputs_of(graph, name))
            users = [forward[source] for source in inputs if source in forward]
            used = {source for user in users for source in inputs_of(graph, user)}
            sharing = [one for one in candidates if inputs & {one, *inputs_of(graph, one)}] or candidates
            found = sharing if len(sharing) == 1 else [one for one in sharing if one in used]
        else:
            found = candidates
        if len(found) == 1:
            forward.setdefault(name, found[0])


def _add_by_order(forward: dict[str, str], gradients: Iterable[_Gradient]) -> None:
    """Add the candidates if one call of a tape created one gradient for each, in reverse order."""
    groups: dict[tuple[tuple[str, ...], Stack, str], list[str]] = {}
    for op, candidates, call in gradients:
        groups.setdefault((candidates, call, _NUMBER.sub("", op.name)), []).append(op.name)
    for (candidates, _, _), names in groups.items():
        if len(names) == len(candidates):
            for name, candidate in zip(names, reversed(candidates), strict=True):
                forward.setdefault(name, candidate)
