"""What is known of a job's nodes besides what they cost: from its graphs, its op log, and the shapes that traces recorded."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import pyarrow as pa

from ..flops import attributes
from ..flops.counts import Count, Counting, Ran, registered
from ..flops.definitions import Definition, Source, complete, definitions
from ..flops.registry import Dims
from ..flops.shapes import Agreed, Nodes, StepShapes, filled, open_nodes, shown, sized_nodes
from ..store.reader import Ask, Job
from ..store.schema import NODE, STATE, TRAINABLE, UNTRAINED
from ..tfviews.inlined import inlined
from ..tfviews.nodes import NO_FACTS, NodeFacts, Shape, texts
from ..tfviews.parity import Parity
from ..tfviews.stacks import FRAME_COLUMNS, stacks
from .recorded_shapes import Recorder
from .required_facts import FLOAT_OPS, GRAPH, SHAPES, STACKS

#: Op types of what has parameters; others' attribute `shape` is that of what is fed, or put out.
_VARIABLES: Final = frozenset({"Variable", "VariableV2", "VarHandleOp"})


@dataclass(frozen=True, slots=True)
class Known:
    """Facts by node, and operations by node where they are counted step by step; how many nodes ran and could not be counted."""

    facts: Mapping[str, NodeFacts]
    counts: Mapping[str, Count]
    uncounted: int = 0


NOTHING_KNOWN: Final = Known({}, {})


class Steps(NamedTuple):
    """Traces of a job: all of them, the numbers of those that are asked for (None: all), and the ROLLUP of these."""

    traces: pa.Table
    chosen: Sequence[int] | None
    rollup: pa.Table


class _OpLog:
    """What an op log, or the job itself, says of nodes."""

    def __init__(self, rows: pa.Table, parity: Parity) -> None:
        self.float_ops: dict[str, int] = {}
        self.types: dict[str, list[str]] = {}
        self.shapes: dict[str, Shape] = {}
        self.state: set[str] = set()
        untrained: set[str] = set()
        columns: list[list[Any]] = [rows[name].to_pylist() for name in ("name", "float_ops", "types", "shape")]
        for name, float_ops, types, shape in zip(*columns, strict=True):
            if float_ops:
                self.float_ops[name] = float_ops
            if STATE in types:
                self.state.add(name)
            elif UNTRAINED in types:
                untrained.add(name)
            elif types:
                self.types.setdefault(name, []).extend(types)
            if shape:
                self.shapes[name] = tuple(shape)
        for name in () if parity.exact else untrained & set(self.types):
            self.types[name] = [each for each in self.types[name] if each != TRAINABLE]


def known(job: Job, names: pa.Table, steps: Steps, needs: Collection[str], parity: Parity) -> Known:
    """Read what ``needs`` name of the facts of a job's nodes; ``names``: its NAMES."""
    found = _known(job, names, steps, needs, parity) if {GRAPH, FLOAT_OPS, SHAPES} & set(needs) else NOTHING_KNOWN
    return replace(found, facts=_with_stacks(found.facts, job, names, parity)) if STACKS in needs else found


def _with_stacks(facts: Mapping[str, NodeFacts], job: Job, names: pa.Table, parity: Parity) -> dict[str, NodeFacts]:
    """Return ``facts`` with Python stacks; nodes put in the place of a loop have those of the nodes in its body."""
    made_in = stacks(job.table("frames", FRAME_COLUMNS), job.table("stacks"))
    if not parity.exact:
        bodies = {name: inlined(name) for name in texts(names, NODE).values() if name not in made_in}
        made_in |= {name: made_in[body] for name, body in bodies.items() if body in made_in}
    with_stacks = {
        name: replace(facts[name], stack=stack) if name in facts else NodeFacts(stack=stack)
        for name, stack in made_in.items()
    }
    return {**facts, **with_stacks}


def _known(job: Job, names: pa.Table, steps: Steps, needs: Collection[str], parity: Parity) -> Known:
    graph = job.table("graph_nodes", ["graph", "name", "op", "node_def"])
    log = _OpLog(job.table("op_log"), parity)
    rows: list[Any] = list(zip(*(graph[name].to_pylist() for name in ("graph", "name", "op", "node_def")), strict=True))
    slots = parity._replace(compat="1.15") if job.info.tells_slots else parity
    of_graph = attributes.facts([(name, node_def) for _, name, _, node_def in rows], slots)
    facts = {name: _logged(name, fact, log, parity) for name, fact in of_graph.items()}
    if not parity.exact:
        facts |= _without_parameters(rows, facts, log)
    if FLOAT_OPS not in needs and (parity.exact or SHAPES not in needs):
        return Known(facts, {})
    only_logged = parity.exact and bool(job.info.identity.get("op_log"))
    if only_logged:
        return Known(_with_counts(facts, _of_log(log.float_ops, facts)), {})
    found = definitions(rows)

    def recorded(ask: Ask) -> Known:
        recorder = Recorder(ask, names, steps.traces, steps.chosen)
        if not parity.exact:
            return _counted(found, facts, log, recorder, steps, needs, parity)
        return Known(_with_counts(facts, _registered(found, recorder, parity) | _of_log(log.float_ops, facts)), {})

    return job.asked(recorded)


def _logged(name: str, fact: NodeFacts, log: _OpLog, parity: Parity) -> NodeFacts:
    types, shape = log.types.get(name), None if parity.exact else log.shapes.get(name)
    if types is None and shape is None:
        return fact
    return replace(fact, types=tuple(dict.fromkeys(types or ())), parameter_shape=shape or fact.parameter_shape)


def _without_parameters(
    rows: Iterable[tuple[int, str, str, bytes]], facts: Mapping[str, NodeFacts], log: _OpLog
) -> dict[str, NodeFacts]:
    """Return what has none: all but variables and placeholders that stand for one, and what optimizers and metrics made."""
    variables = {name for _, name, op, _ in rows if op in _VARIABLES} | log.shapes.keys()
    none = (facts.keys() - variables) | (facts.keys() & log.state)
    return {name: replace(facts[name], parameter_shape=()) for name in none if facts[name].parameter_shape}


def _with_counts(facts: Mapping[str, NodeFacts], counts: Mapping[str, Count]) -> dict[str, NodeFacts]:
    """Return ``facts`` with the operations of one execution, also of nodes that no graph has."""
    return {
        **facts,
        **{name: replace(facts.get(name, NO_FACTS), float_ops=count.one) for name, count in counts.items()},
    }


def _of_log(float_ops: Mapping[str, int], facts: Mapping[str, NodeFacts]) -> dict[str, Count]:
    return {name: Count(number) for name, number in float_ops.items() if name in facts}


def _registered(found: Iterable[Definition], recorder: Recorder, parity: Parity) -> dict[str, Count]:
    """Return the counts of TensorFlow's registry; what the first traces leave open is looked for in all."""
    nodes = Nodes(found)
    first = {name: each[0] for name, each in nodes.by_name.items()}
    outputs = {name: node.outputs for name, node in first.items()}
    for early in (True, False):
        left = {name: node for name, node in first.items() if not all(map(complete, outputs[name]))}
        outputs |= filled(left, recorder.first(left, early=early))
    return registered(nodes, outputs, parity)


def _counted(
    found: list[Definition],
    facts: dict[str, NodeFacts],
    log: _OpLog,
    recorder: Recorder,
    steps: Steps,
    needs: Collection[str],
    parity: Parity,
) -> Known:
    """Return what traces recorded: operations step by step, and shapes of inputs that the graph leaves open."""
    nodes = Nodes(found)
    if not steps.traces.num_rows:
        outputs = {name: each[0].outputs for name, each in nodes.by_name.items()}
        static = registered(nodes, outputs, parity) | _of_log(log.float_ops, facts)
        return Known(_with_counts(facts, static), static)
    names = recorder.ran(steps.rollup)
    varying = open_nodes(nodes, names, parity)
    ran = Ran(nodes, recorder.samples(names) if FLOAT_OPS in needs else {}, parity)
    counting = Counting(ran, log.float_ops, varying, parity) if FLOAT_OPS in needs else None
    agreed = Agreed(nodes) if SHAPES in needs else None
    for alike in recorder.alike(varying, sized_nodes(nodes, varying)):
        shapes = StepShapes(nodes, alike.rows, alike.orders)
        if agreed is not None:
            agreed.add(shapes)
        if counting is not None:
            counting.add(alike, shapes)
    if agreed is not None:
        facts = _with_inputs(nodes, facts, agreed.outputs())
    if counting is None:
        return Known(facts, {})
    counts, unknown = counting.counted()
    return Known(_with_counts(facts, counts), counts, unknown)


def _with_inputs(nodes: Nodes, facts: dict[str, NodeFacts], outputs: Mapping[Source, Dims]) -> dict[str, NodeFacts]:
    """Return ``facts`` with the shapes of inputs, of the output that is meant, as recorded where the graph leaves sizes open."""
    changed = {}
    for name, (node, *_) in nodes.by_name.items():
        dims = (_known_dims(nodes, node, source, outputs) for source in node.inputs)
        shapes = tuple(map(shown, dims))
        if shapes != facts[name].input_shapes:
            changed[name] = replace(facts[name], input_shapes=shapes)
    return {**facts, **changed}


def _known_dims(nodes: Nodes, node: Definition, source: Source, outputs: Mapping[Source, Dims]) -> Dims | None:
    dims = nodes.output(node.graph, source)
    return dims if complete(dims) else outputs.get(Source(source.name, source.slot), dims)
