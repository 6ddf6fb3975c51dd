"""Names of the facts about nodes that a query may require beyond the rollup.

They stand for graphs, operation counts, shapes and Python stacks.
"""

from typing import Final

GRAPH, FLOAT_OPS, SHAPES, STACKS = "graph", "float_ops", "shapes", "stacks"
ALL_FACTS: Final = frozenset({GRAPH, FLOAT_OPS, SHAPES, STACKS})
