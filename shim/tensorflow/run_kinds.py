"""Finds the span kind of a session run from the ops that it fetches and targets.

Each set of fetches and targets is examined once. The table of op types decides.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from itertools import islice

from ...formats import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Sequence

OPS_MAX = 256  # maximum ops examined of those that a run waits for
_VALUE = 64  # maximum ops examined of those that an assigned value depends on
_ASSIGNMENTS = 8  # maximum assignments of a group examined; the others count as equal
_FETCHES = 64  # maximum fetches and targets examined; the others count as equal

#: Ops with the purpose of their inputs or control inputs.
_GROUPS = {"NoOp", "Identity", "IdentityN", "ReadVariableOp"}
#: Pattern of op types -> purpose of running them. The first match counts.
_TYPES = [
    (re.compile(pattern + r"\Z"), kind)
    for pattern, kind in (
        (r"(Resource)?(Sparse)?(Accumulator)?Apply(?!Unigram)[A-Z]\w*", layout.TRAIN),
        (r"SparseAccumulatorApplyGradient", layout.TRAIN),
        (r"AssignSub(VariableOp)?|(Resource)?Scatter(Nd)?Sub", layout.TRAIN),
        (r"Save(V2|Slices)?|MergeV2Checkpoints|Restore(V2|Slice)?", layout.CHECKPOINT),
        (r"\w*Summary(V2)?|Write\w+Summary|(Create|Flush|Close)Summary\w+", layout.SUMMARY),
        (r"InitializeTable\w*|LookupTableImport(V2)?|MakeIterator", layout.INIT),
        (r"(VarIs|Is)\w*Initialized\w*", layout.INIT),
        (r"QueueEnqueue(Many)?(V2)?|QueueClose(V2)?", layout.INPUT),
    )
]
_ASSIGN = {"Assign", "AssignVariableOp"}
_ADD = {"AssignAdd", "AssignAddVariableOp"}
_RESTORE = {"Restore", "RestoreV2", "RestoreSlice"}
_known: dict[str, int | None] = {}  # op type -> its purpose by the table
_STEP = "global_step"  # name of TensorFlow's collection, and of its variable

#: Priority of kinds for a run with several: a run that trains is a training run, whatever it
#: fetches besides.
_ORDER = (layout.TRAIN, layout.RUN, layout.CHECKPOINT, layout.SUMMARY, layout.INIT, layout.INPUT)


def with_feeds(key: int, feeds: int) -> int:
    """Return the span key of a run with ``feeds`` feeds; ``key`` is from ``signature_key``."""
    return key | (min(15, feeds)) << 28


def signature_key(fetches: Sequence[str], targets: Sequence[str]) -> int:
    """Return the key of runs with these names: the counts of fetches and targets, and a hash."""
    names = "\0".join(list(fetches) + ["\0"] + list(targets))
    return min(len(fetches), 15) << 24 | min(len(targets), 15) << 20 | zlib.crc32(names.encode()) & 0xFFFFF


def kind_of(graph: Any, ops: Iterable[Any]) -> int:
    """Return the kind of a run of ``ops`` of ``graph``."""
    steps = {_STEP}
    steps.update(getattr(getattr(each, "op", None), "name", "") for each in graph.get_collection(_STEP))
    plain: list[Any] = []
    kinds = {_purpose(op, steps, plain) for op in islice(ops, _FETCHES)}
    if layout.TRAIN not in kinds and any(_of_type(op, steps) == layout.TRAIN for op in _walk(plain, OPS_MAX)):
        return layout.TRAIN
    return _first(kinds)


def _first(kinds: set[int]) -> int:
    return next((kind for kind in _ORDER if kind in kinds), layout.RUN)


def _purpose(op: Any, steps: set[str], plain: list[Any]) -> int:
    """Return the purpose of running ``op``; ops of unknown purpose are added to ``plain``.

    ``steps`` are the names of the variables that count training steps.
    """
    found: set[int] = set()
    assigned = 0
    for each in _walk([op], OPS_MAX, groups=True):
        if each.type in _ASSIGN:
            assigned += 1
            if assigned <= _ASSIGNMENTS:
                found.add(_of_assignment(each))
        elif each.type not in _GROUPS:
            kind = _of_type(each, steps)
            if kind is None:
                plain.append(each)
            else:
                found.add(kind)
        if layout.TRAIN in found:
            break
    return _first(found)


def _of_type(op: Any, steps: set[str]) -> int | None:
    text = op.type
    if text in _ADD:
        return layout.TRAIN if op.inputs[0].op.name in steps else None
    if text not in _known:
        _known[text] = next((kind for pattern, kind in _TYPES if pattern.match(text)), None)
    return _known[text]


def _of_assignment(op: Any) -> int:
    """Return the purpose of an assignment: training if the value depends on the variable."""
    variable, value = op.inputs[0].op, op.inputs[1].op
    for each in _walk([value], _VALUE):
        if each is variable:
            return layout.TRAIN
        if each.type in _RESTORE:
            return layout.CHECKPOINT
    return layout.INIT


def _walk(roots: Iterable[Any], limit: int, groups: bool = False) -> Iterator[Any]:
    """Yield ``roots`` and their dependencies, nearest first; ``groups``: only those of groups."""
    waiting = deque(roots)
    seen = {op.name for op in waiting}
    while waiting and limit:
        limit -= 1
        op = waiting.popleft()
        yield op
        if groups and op.type not in _GROUPS:
            continue
        for below in list(op.control_inputs) + [each.op for each in op.inputs]:
            if below.name not in seen:
                seen.add(below.name)
                waiting.append(below)
