"""Reads the operators of a job's traced steps, with their numbers per step."""

from ..summaries.operators import Operator, Shapes
from ..summaries.top import short_device
from ..tfviews.nodes import Node
from .engine import QueryEngine, Selection
from .facts import FLOAT_OPS, GRAPH, SHAPES

_NS: float = 1e9


def operators(selection: Selection) -> list[Operator]:
    """Return the nodes that ran and took time, in the order of the graph; numbers are per step.

    Raises UsageError ``no-such-step``, ``no-such-kind``, ``no-such-device``.
    """
    profile = QueryEngine().profile(selection, -1, frozenset({FLOAT_OPS, GRAPH, SHAPES}))
    nodes = [node for node in profile.nodes if node.stats.micros > 0 and node.entries] if profile else []
    output_bytes = {node.name: node.stats.output_bytes for node in nodes}
    return [_operator(node, number, output_bytes) for number, node in enumerate(nodes, 1)]


def _operator(node: Node, number: int, output_bytes: dict[str, int]) -> Operator:
    facts = node.facts
    memory = sum(output_bytes.get(name, 0) for name in dict.fromkeys((node.name, *facts.inputs)))
    return Operator(
        node.name,
        node.op,
        number,
        short_device("|".join(node.devices)),
        node.stats.micros / _NS,
        node.stats.float_ops or None,
        memory or None,
        _known(facts.input_shapes),
        _known(facts.output_shapes),
    )


def _known(shapes: Shapes) -> Shapes:
    """Return the shapes that are known."""
    return tuple(shape for shape in shapes if shape)
