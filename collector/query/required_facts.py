"""What of nodes is looked at: graphs, operation counts, recorded shapes, Python stacks. Each takes reading more than the rollup."""

from typing import Final

GRAPH, FLOAT_OPS, SHAPES, STACKS = "graph", "float_ops", "shapes", "stacks"
EVERYTHING: Final = frozenset({GRAPH, FLOAT_OPS, SHAPES, STACKS})
