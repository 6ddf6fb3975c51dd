"""The graph view: each node has its inputs below it.

A node appears once, where a walk from the nodes without consumers first meets it.
"""

from collections.abc import Sequence

from .account_filter import account_filter
from .nodes import Node
from .options import Options
from .parity import DEFAULT, Parity
from .tree import AccountedNode, TreeView, root_of, tree_view


def _walk(nodes: Sequence[Node]) -> tuple[list[Node], list[int]]:
    """Walk depth first from nodes without consumers, and return the nodes in order.

    Also return for each node the position of the consumer through which the walk met it, -1 for a
    start.
    """
    unvisited = {node.name: node for node in nodes}
    consumed = {name for node in nodes for name in node.facts.inputs}
    pending = [(name, -1) for name in reversed(unvisited) if name not in consumed]
    walked: list[Node] = []
    consumers: list[int] = []
    while pending:
        name, consumer = pending.pop()
        node = unvisited.pop(name, None)
        if node is None:  # already met, or not a node
            continue
        if inputs := node.facts.inputs:
            at = len(walked)
            pending += [(source, at) for source in reversed(inputs)]
        walked.append(node)
        consumers.append(consumer)
    return walked, consumers


def graph_view(nodes: Sequence[Node], options: Options, parity: Parity = DEFAULT) -> TreeView:
    """Fold nodes in name order into the graph view.

    Nodes that are not accounted are dropped. Accounted nodes below them move up to the nearest
    accounted consumer.
    """
    walked, consumers = _walk(nodes)
    is_accounted = list(map(account_filter(options.account_type_regexes), walked))
    parents: list[int] = []  # the nearest accounted consumer
    for consumer in consumers:
        parents.append(consumer if consumer < 0 or is_accounted[consumer] else parents[consumer])
    accounted_inputs: dict[int, list[AccountedNode]] = {}
    for at in range(len(walked) - 1, -1, -1):  # descendants come after their ancestors
        if is_accounted[at]:
            node = walked[at]
            inputs = accounted_inputs.pop(at, [])
            inputs.reverse()
            accounted_inputs.setdefault(parents[at], []).append(
                AccountedNode(node.name, node.stats, (node,), inputs, accounted=True)
            )
    roots = accounted_inputs.pop(-1, [])
    roots.reverse()
    names = frozenset(node.name for node, accounted in zip(walked, is_accounted, strict=True) if accounted)
    unreached = len(nodes) - len(walked)
    return tree_view(root_of(roots), options, parity, nodes=len(nodes), accounted=names, unreached=unreached)
