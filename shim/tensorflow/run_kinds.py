"""Finds the span kind of a session run from the types of the ops that it fetches and targets."""

from __future__ import annotations

import re
from collections import deque
from itertools import islice
from typing import Any, Iterable, Iterator

from ...formats import layout

OPS_MAX = 256  # maximum ops examined among the dependencies of a run
_VALUE_OPS_MAX = 64  # maximum ops examined of those that an assigned value depends on
_ASSIGNMENTS_MAX = 8  # maximum assignments of a group examined; the others are assumed to be alike
_FETCHES_MAX = 64  # maximum fetches and targets examined; the others are assumed to be alike

#: Types of ops whose purpose is that of their inputs and control inputs.
_GROUPS = {"NoOp", "Identity", "IdentityN", "ReadVariableOp"}
#: Pattern of op types -> purpose of running them. The first match counts.
_TYPES = [
    (re.compile(r"(?:%s)\Z" % pattern), kind)
    for pattern, kind in (
        (r"(Resource)?(Sparse)?(Accumulator)?Apply(?!Unigram)[A-Z]\w*", layout.TRAIN),
        (r"AssignSub(VariableOp)?|(Resource)?Scatter(Nd)?Sub", layout.TRAIN),
        (r"Save(V2|Slices)?|MergeV2Checkpoints|Restore(V2|Slice)?", layout.CHECKPOINT),
        (r"\w*Summary(V2)?|Write\w+Summary|(Create|Flush|Close)Summary\w+", layout.SUMMARY),
        (r"InitializeTable\w*|LookupTableImport(V2)?|(VarIs|Is)\w*Initialized\w*|MakeIterator", layout.INIT),
        (r"QueueEnqueue(Many)?(V2)?|QueueClose(V2)?", layout.INPUT),
    )
]
_ASSIGN = {"Assign", "AssignVariableOp"}
_ADD = {"AssignAdd", "AssignAddVariableOp"}
_RESTORE = {"Restore", "RestoreV2", "RestoreSlice"}
_GLOBAL_STEP = "global_step"  # name of TensorFlow's collection, and of its variable

#: Priority of kinds, for a run whose ops have several: a run that trains is a training run,
#: whatever else it fetches.
_PRIORITY = (layout.TRAIN, layout.RUN, layout.CHECKPOINT, layout.SUMMARY, layout.INIT, layout.INPUT)


def kind_of(graph: Any, ops: Iterable[Any]) -> int:
    """Return the kind of a run of ``ops`` of ``graph``."""
    step_counters = {_GLOBAL_STEP}
    step_counters.update(getattr(getattr(each, "op", None), "name", "") for each in graph.get_collection(_GLOBAL_STEP))
    unknown_ops: list[Any] = []
    kinds = {_purpose(op, step_counters, unknown_ops) for op in islice(ops, _FETCHES_MAX)}
    dependencies = () if layout.TRAIN in kinds else _walk(unknown_ops, OPS_MAX)
    if any(_type_purpose(op, step_counters) == layout.TRAIN for op in dependencies):
        return layout.TRAIN
    return min(kinds, key=_PRIORITY.index, default=layout.RUN)


def _purpose(op: Any, step_counters: set[str], unknown_ops: list[Any]) -> int:
    """Return the purpose of running ``op``; ops of unknown purpose are added to ``unknown_ops``.

    ``step_counters`` are the names of the variables that count training steps.
    """
    kinds: set[int] = set()
    assignments = 0
    for member in _walk([op], OPS_MAX, groups_only=True):
        if member.type in _ASSIGN:
            assignments += 1
            if assignments <= _ASSIGNMENTS_MAX:
                kinds.add(_assignment_purpose(member))
        elif member.type not in _GROUPS:
            kind = _type_purpose(member, step_counters)
            if kind is None:
                unknown_ops.append(member)
            else:
                kinds.add(kind)
        if layout.TRAIN in kinds:
            break
    return min(kinds, key=_PRIORITY.index, default=layout.RUN)


def _type_purpose(op: Any, step_counters: set[str]) -> int | None:
    if op.type in _ADD:
        return layout.TRAIN if op.inputs[0].op.name in step_counters else None
    return next((kind for pattern, kind in _TYPES if pattern.match(op.type)), None)


def _assignment_purpose(op: Any) -> int:
    """Return the purpose of an assignment: training if the value depends on the variable."""
    variable, value = op.inputs[0].op, op.inputs[1].op
    for dependency in _walk([value], _VALUE_OPS_MAX):
        if dependency is variable:
            return layout.TRAIN
        if dependency.type in _RESTORE:
            return layout.CHECKPOINT
    return layout.INIT


def _walk(roots: Iterable[Any], limit: int, groups_only: bool = False) -> Iterator[Any]:
    """Yield ``roots`` and their dependencies, nearest first; ``groups_only``: those of groups."""
    waiting = deque(roots)
    seen = {op.name for op in waiting}
    while waiting and limit:
        limit -= 1
        op = waiting.popleft()
        yield op
        if groups_only and op.type not in _GROUPS:
            continue
        for dependency in list(op.control_inputs) + [each.op for each in op.inputs]:
            if dependency.name not in seen:
                seen.add(dependency.name)
                waiting.append(dependency)
