"""The graph view: below each node its inputs, each node where the walk from the outputs first meets it."""

from collections.abc import Mapping, Sequence

from tfprof.collector.views.account import accounts
from tfprof.collector.views.nodes import Node
from tfprof.collector.views.options import Options
from tfprof.collector.views.rules import DEFAULT, Rules
from tfprof.collector.views.tree import Kept, TreeView, root_of, tree_view


def _inputs(nodes: Sequence[Node]) -> dict[str, list[str]]:
    """Return the known inputs of each node, by input position."""
    known = {node.name for node in nodes}
    return {node.name: [name for name in node.facts.inputs if name in known] for node in nodes}


def _tree(nodes: Sequence[Node], inputs: Mapping[str, list[str]]) -> list[tuple[str, int]]:
    """Walk from what is nobody's input, depth first; return (name, position of the consumer, -1 for none) as met."""
    consumed = {name for sources in inputs.values() for name in sources}
    ahead = [(node.name, -1) for node in reversed(nodes) if node.name not in consumed]
    met: set[str] = set()
    walked = []
    while ahead:
        name, consumer = ahead.pop()
        if name in met:
            continue
        met.add(name)
        at = len(walked)
        walked.append((name, consumer))
        ahead.extend([(source, at) for source in reversed(inputs[name]) if source not in met])
    return walked


def graph_view(nodes: Sequence[Node], options: Options, rules: Rules = DEFAULT) -> TreeView:
    """Fold nodes in name order into the graph view.

    What is not accounted is dropped with its own numbers; what is accounted below it moves up to its consumer.
    """
    accounted = accounts(options.account_type_regexes)
    known = {node.name: node for node in nodes}
    walked = _tree(nodes, _inputs(nodes))
    counts = [accounted(known[name]) for name, _ in walked]
    above = _kept_consumers(walked, counts)
    children: list[list[Kept]] = [[] for _ in range(len(walked) + 1)]  # the last: of the root
    for at in range(len(walked) - 1, -1, -1):
        if counts[at]:
            node = known[walked[at][0]]
            mine = children[at]
            mine.reverse()
            children[above[at]].append(Kept(node.name, node.stats, (node,), mine, accounted=True))
    children[-1].reverse()
    names = frozenset(name for (name, _), counted in zip(walked, counts, strict=True) if counted)
    unreached = len(nodes) - len(walked)
    return tree_view(root_of(children[-1]), options, rules, nodes=len(nodes), accounted=names, unreached=unreached)


def _kept_consumers(walked: Sequence[tuple[str, int]], counts: Sequence[bool]) -> list[int]:
    """Return for each walked node the position of the nearest accounted one that it is below, -1 for the root."""
    above: list[int] = []
    for _, consumer in walked:
        above.append(consumer if consumer < 0 or counts[consumer] else above[consumer])
    return above
