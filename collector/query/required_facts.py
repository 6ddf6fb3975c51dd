"""Facts about nodes that a query may require beyond the rollup: graphs, operation counts, shapes, Python stacks."""

from typing import Final

GRAPH, FLOAT_OPS, SHAPES, STACKS = "graph", "float_ops", "shapes", "stacks"
EVERYTHING: Final = frozenset({GRAPH, FLOAT_OPS, SHAPES, STACKS})
