"""Reads static facts about a job's nodes from its graphs, op log and recorded shapes."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa

from ..flops import attributes
from ..flops.counts import Count, ExecutedNodes, OperationCounter, registry_counts
from ..flops.definitions import Definition, InputSource, definitions, is_fully_known
from ..flops.registry import Dims
from ..flops.shapes import (
    CommonShapes,
    Nodes,
    StepShapes,
    batch_nodes,
    open_nodes,
    tf_profiler_shape,
    with_recorded_shapes,
)
from ..store.columns import row_tuples
from ..store.schema import STATE, TRAINABLE, UNTRAINED
from ..tfviews.nodes import NO_FACTS, NodeFacts, Shape
from ..tfviews.parity import Parity
from .facts import FLOAT_OPS, SHAPES, JobFacts, SelectedJob
from .recorded_shapes import ShapeReader, read_shapes

#: Scope of the nodes of a replica other than the first, and end of the names of its variables.
_REPLICA: Final = re.compile(r"replica_[1-9][0-9]*")
#: Op types with parameters; the attribute `shape` of other ops describes a feed or an output.
_VARIABLES: Final = frozenset({"Variable", "VariableV2", "VarHandleOp"})


class _OpLog:
    """Facts about nodes from an op log, or from the job itself."""

    def __init__(self, rows: pa.Table, parity: Parity) -> None:
        self.float_ops: dict[str, int] = {}
        self.types: dict[str, list[str]] = {}
        self.shapes: dict[str, Shape] = {}
        self.state_names: set[str] = set()
        untrained_names: set[str] = set()
        for name, float_ops, types, shape in row_tuples(rows, "name", "float_ops", "types", "shape"):
            if float_ops:
                self.float_ops[name] = float_ops
            if STATE in types:
                self.state_names.add(name)
            elif UNTRAINED in types:
                untrained_names.add(name)
            elif types:
                self.types.setdefault(name, []).extend(types)
                untrained_names.discard(name)  # its layer was unfrozen
            if shape:
                self.shapes[name] = tuple(shape)
        for name in untrained_names & set(self.types) if parity.knows_parameters else ():
            self.types[name] = [label for label in self.types[name] if label != TRAINABLE]


def graph_facts(
    selected: SelectedJob, names: pa.Table, rollup: pa.Table, required_facts: Collection[str], parity: Parity
) -> JobFacts:
    """Read ``required_facts`` about a job's nodes.

    ``names``: the job's NAMES; ``rollup``: the ROLLUP of the selected traces.
    """
    job = selected.job
    graph = job.table("graph_nodes", ["graph", "name", "op", "node_def"])
    op_log = _OpLog(job.table("op_log"), parity)
    rows = list(row_tuples(graph, "graph", "name", "op", "node_def"))
    by_slot = parity.reads_slots or job.info.has_input_slots
    facts_of_graph = attributes.facts(((name, node_def) for _, name, _, node_def in rows), by_slot=by_slot)
    facts = {name: _with_op_log(name, fact, op_log, parity) for name, fact in facts_of_graph.items()}
    if parity.knows_parameters:
        facts |= _without_parameters(rows, facts, op_log)
    if FLOAT_OPS not in required_facts and (not parity.counts_by_step or SHAPES not in required_facts):
        return JobFacts(facts, {})
    uses_op_log_only = not parity.counts_by_step and bool(job.info.identity.get("op_log"))
    if uses_op_log_only:
        return JobFacts(_with_counts(facts, _op_log_counts(op_log.float_ops, facts)), {})
    node_definitions = definitions(rows)

    def facts_from_shapes(reader: ShapeReader) -> JobFacts:
        if parity.counts_by_step:
            executed = rollup if selected.traces.num_rows else None
            return _with_recorded_facts(node_definitions, facts, op_log, reader, executed, required_facts, parity)
        return JobFacts(
            _with_counts(
                facts, _registry_counts(node_definitions, reader, parity) | _op_log_counts(op_log.float_ops, facts)
            ),
            {},
        )

    return read_shapes(job, names, selected.traces, selected.numbers, facts_from_shapes)


def _with_op_log(name: str, node_facts: NodeFacts, op_log: _OpLog, parity: Parity) -> NodeFacts:
    types, shape = op_log.types.get(name), op_log.shapes.get(name) if parity.knows_parameters else None
    if types is None and shape is None:
        return node_facts
    return replace(
        node_facts, types=tuple(dict.fromkeys(types or ())), parameter_shape=shape or node_facts.parameter_shape
    )


def _without_parameters(
    rows: Iterable[tuple[int, str, str, bytes]], facts: Mapping[str, NodeFacts], op_log: _OpLog
) -> dict[str, NodeFacts]:
    """Remove the parameter shapes of nodes without parameters; return the changed facts.

    These nodes are the variables of optimizers and metrics, the copies of a variable for further
    replicas (MirroredStrategy), and all ops that are not variables.
    """
    variables = {name for _, name, op, _ in rows if op in _VARIABLES} | op_log.shapes.keys()
    copies = {
        name
        for name in facts.keys() & variables
        if (first := facts.get(_of_first_replica(name))) is not None
        and first.parameter_shape == facts[name].parameter_shape
        and first is not facts[name]
    }
    without_parameters = (facts.keys() - variables) | (facts.keys() & op_log.state_names) | copies
    return {
        name: replace(facts[name], parameter_shape=()) for name in without_parameters if facts[name].parameter_shape
    }


def _of_first_replica(name: str) -> str:
    """Return the name of the same node of the first replica, for `replica_1/dense/kernel`."""
    return "/".join(part for part in name.split("/") if not _REPLICA.fullmatch(part))


def _with_counts(facts: Mapping[str, NodeFacts], counts: Mapping[str, Count]) -> dict[str, NodeFacts]:
    """Return ``facts`` with the operations of one execution, also for nodes outside of graphs."""
    return {
        **facts,
        **{name: replace(facts.get(name, NO_FACTS), float_ops=count.per_execution) for name, count in counts.items()},
    }


def _op_log_counts(float_ops: Mapping[str, int], facts: Mapping[str, NodeFacts]) -> dict[str, Count]:
    return {name: Count(number) for name, number in float_ops.items() if name in facts}


def _registry_counts(node_definitions: Iterable[Definition], reader: ShapeReader, parity: Parity) -> dict[str, Count]:
    """Return the operations of one execution of each node that TensorFlow's registry can count.

    Shapes that the graph leaves open are read from the first traces. Shapes that are missing there
    are read from all traces.
    """
    nodes = Nodes(node_definitions)
    first_nodes = {name: same_named_nodes[0] for name, same_named_nodes in nodes.by_name.items()}
    outputs = {name: node.outputs for name, node in first_nodes.items()}
    for first_traces_only in (True, False):
        incomplete = {name: node for name, node in first_nodes.items() if not all(map(is_fully_known, outputs[name]))}
        outputs |= with_recorded_shapes(
            incomplete, reader.first_signatures(incomplete, first_traces_only=first_traces_only)
        )
    return registry_counts(nodes, outputs, parity)


def _with_recorded_facts(
    node_definitions: list[Definition],
    facts: dict[str, NodeFacts],
    op_log: _OpLog,
    reader: ShapeReader,
    rollup: pa.Table | None,
    required_facts: Collection[str],
    parity: Parity,
) -> JobFacts:
    """Return ``facts`` with the facts that the traces of ``rollup`` recorded.

    Depending on ``required_facts``, these facts are the operations, counted step by step, and the
    input shapes that the graph does not specify. If the job has no traces, the operations are
    counted from the graph.
    """
    nodes = Nodes(node_definitions)
    if rollup is None:
        outputs = {name: same_named_nodes[0].outputs for name, same_named_nodes in nodes.by_name.items()}
        graph_counts = registry_counts(nodes, outputs, parity) | _op_log_counts(op_log.float_ops, facts)
        return JobFacts(_with_counts(facts, graph_counts), graph_counts)
    names = reader.executed_names(rollup)
    open_names = open_nodes(nodes, names, parity)
    executed = ExecutedNodes(nodes, reader.sample_executions(names) if FLOAT_OPS in required_facts else {}, parity)
    counter = OperationCounter(executed, op_log.float_ops, open_names, parity) if FLOAT_OPS in required_facts else None
    common_shapes = CommonShapes(nodes) if SHAPES in required_facts else None
    for equivalent_steps in reader.equivalent_steps(open_names, batch_nodes(nodes, open_names)):
        shapes = StepShapes(nodes, equivalent_steps.rows, equivalent_steps.loop_signatures)
        if common_shapes is not None:
            common_shapes.add(shapes)
        if counter is not None:
            counter.add(equivalent_steps, shapes)
    if common_shapes is not None:
        facts = _with_input_shapes(nodes, facts, common_shapes.outputs())
    if counter is None:
        return JobFacts(facts, {})
    counts, uncounted = counter.count()
    return JobFacts(_with_counts(facts, counts), counts, uncounted)


def _with_input_shapes(
    nodes: Nodes, facts: dict[str, NodeFacts], outputs: Mapping[InputSource, Dims]
) -> dict[str, NodeFacts]:
    """Return ``facts`` with input shapes, each from the output slot that the input uses.

    Where the graph leaves sizes open, ``outputs`` has the recorded shapes.
    """
    changed_facts = {}
    for name, (node, *_) in nodes.by_name.items():
        dims = (_known_dims(nodes, node, source, outputs) for source in node.inputs)
        shapes = tuple(map(tf_profiler_shape, dims))
        if shapes != facts[name].input_shapes:
            changed_facts[name] = replace(facts[name], input_shapes=shapes)
    return {**facts, **changed_facts}


def _known_dims(
    nodes: Nodes, node: Definition, source: InputSource, outputs: Mapping[InputSource, Dims]
) -> Dims | None:
    dims = nodes.output(node.graph, source)
    return dims if is_fully_known(dims) else outputs.get(InputSource(source.name, source.slot), dims)
