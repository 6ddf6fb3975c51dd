"""Programs that XLA compiled: their time in a step, and the TensorFlow ops that went into them."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ..tfviews.nodes import Node
from ..tfviews.places import Places
from .op_classes import LAUNCHES
from .top import Times, shares

#: The op type under which programs are compared with the ops that they replaced.
COMPILED: Final = "compiled by XLA"

_AFTER_NAME: Final = re.compile(r"__Xla.*|(?:_*(?:\.\d+)+)?(?:\(\d+\))?\Z", re.DOTALL)
#: XLA's names begin with a letter: `__inference_step_12` becomes `a_inference_step_12`.
_FUNCTION: Final = re.compile(r"[a_]_inference_(.+)_\d+", re.DOTALL)
_CLUSTER: Final = re.compile(r"(cluster_\d+)(?:_\d+)?/xla_run")


class Part(NamedTuple):
    """A TensorFlow op that went into a program, or an instruction from none (a row of PROGRAMS)."""

    module: str
    node: str
    op: str
    fused_into: str
    instructions: int


class ProgramOp(NamedTuple):
    """A TensorFlow op of a program, or what XLA added to it.

    ``op``: its type, of an executed fusion with `_fusion` after it. ``ns``: its time per step; None
    if it has none of its own. ``fused_into``: the node that has its time, '' if there is none.
    ``instructions``: number of HLO instructions that came from it, 0 if unknown.
    """

    node: str
    op: str
    ns: float | None
    fused_into: str
    instructions: int
    line: str


class FirstRuns(NamedTuple):
    """The calls of a function that made a graph: TensorFlow optimized, compiled and ran it."""

    number: int
    ns: int


class Program(NamedTuple):
    """What XLA made of a function, or of a cluster of ops.

    ``ns``: its time per step; None if it did not run in the traced steps. ``share``: that of the
    time of all ops. ``variants``: how many programs it has, such as one for each shape of its
    inputs; 0 if unknown. ``first_runs``: None if they were not recorded.
    """

    name: str
    ns: float | None
    share: float
    variants: int
    first_runs: FirstRuns | None
    ops: tuple[ProgramOp, ...]


def program_name(module: str) -> str:
    """Return the name of the function or cluster that XLA calls ``module``."""
    name = _AFTER_NAME.sub("", module)
    match = _FUNCTION.fullmatch(name)
    return match[1] if match else name


def compiled_nodes(nodes: Iterable[Node], parts: Iterable[Part]) -> frozenset[str]:
    """Return the names of the nodes whose executions are programs or parts of programs."""
    members = {name for part in parts for name in (part.node, part.fused_into)}
    return frozenset(
        node.name for node in nodes if node.op in LAUNCHES or (node.stats.micros > 0 and node.name in members)
    )


def programs(
    nodes: Sequence[Node],
    times: Times,
    steps: int,
    parts: Collection[Part],
    first_runs: Mapping[str, FirstRuns],
    marked: Collection[str] = (),
) -> list[Program]:
    """Return the programs, the longest time first.

    ``nodes`` have sums over ``steps`` steps; ``times`` are the nodes' times in some of these steps.
    ``marked``: the nodes that the job's graph marks to be compiled. They are the ops of a program
    whose parts are not recorded.
    """
    parts_of: dict[str, dict[str, Part]] = defaultdict(dict)
    modules: dict[str, set[str]] = defaultdict(set)
    for part in parts:
        name = program_name(part.module)
        parts_of[name].setdefault(part.node, part)
        modules[name].add(part.module)
    program_of = {node: name for name, of_name in parts_of.items() for node in of_name}
    launches = {
        node.name: _launched(node.name, parts_of) for node in nodes if node.op in LAUNCHES and node.stats.micros
    }
    if marked and len(set(launches.values())) > 1:  # the graph does not show which ops are in which cluster
        launches = dict.fromkeys(launches, f"{len(launches)} clusters")
    program_of |= launches
    ran = shares(((program_of.get(node.name, ""), node) for node in nodes), times, steps)
    of_nodes = {each.key: each.ns for each in shares(((node.name, node) for node in nodes), times, steps)}
    places = Places(nodes)
    by_name = {node.name: node for node in nodes}

    def op_of(part: Part, launched: bool) -> ProgramOp:
        node = by_name.get(part.node)
        has_time = not launched and part.node in of_nodes
        op = node.op if has_time and node is not None else part.op
        line = places.line(node) if node is not None else ""
        ns = of_nodes[part.node] if has_time else None
        return ProgramOp(part.node, op, ns, "" if has_time else part.fused_into, part.instructions, line)

    def program(name: str, ns: float | None, share: float) -> Program:
        own = list(parts_of[name].values()) or [
            Part("", node, by_name[node].op, "", 0) for node in marked if node in by_name and node not in of_nodes
        ]
        found = [op_of(part, name in launches.values()) for part in own]
        ops = sorted((op for op in found if op.op), key=lambda op: (-(op.ns or 0), op.node))
        return Program(name, ns, share, len(modules[name]), first_runs.get(name), tuple(ops))

    found = [program(each.key, each.ns, each.share) for each in ran if each.key]
    return found + [program(name, None, 0.0) for name in sorted(parts_of.keys() - {each.name for each in found})]


def _launched(node: str, known: Collection[str]) -> str:
    """Return the name of the program that the op ``node`` runs."""
    cluster = _CLUSTER.fullmatch(node)
    name = cluster[1] if cluster else node
    # An op that calls a compiled function is named after the call.
    return next(iter(known)) if name not in known and len(known) == 1 else name
