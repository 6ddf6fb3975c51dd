"""Finds the graphs that ops call: functions, loop bodies, branches.

Graphs have no names, so the shapes of their arguments identify them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from .definitions import Definition
from .registry import Dims

#: Key of a node: the number of its graph, and its name.
NodeKey = tuple[int, str]

_PLACEHOLDER: Final = "Placeholder"


class _Call(NamedTuple):
    """A type of call: how many graphs it calls, and which of its inputs it passes to them.

    ``graphs``: the maximum number of called graphs; ``skipped``: the number of leading inputs that
    are not passed.
    """

    graphs: int = 1
    skipped: int = 0


_LOOPS: Final = ("While", "StatelessWhile")
_CALLS: Final = {
    **dict.fromkeys(("PartitionedCall", "StatefulPartitionedCall"), _Call()),
    **dict.fromkeys(_LOOPS, _Call(2)),
    **dict.fromkeys(("If", "StatelessIf"), _Call(2, 1)),
    **dict.fromkeys(("Case", "StatelessCase"), _Call(8, 1)),
}


class CallGraph:
    """The calls between a job's graphs."""

    def __init__(self, nodes: Mapping[NodeKey, Definition]) -> None:
        """Match each call with the graphs whose placeholders fit its arguments.

        The number of placeholders must be equal to that of the arguments, and their shapes must be
        compatible.
        """
        self._nodes = nodes
        functions_by_arity = _functions_by_arity(nodes.values())
        self._targets = {
            key: self._callees(node, functions_by_arity) for key, node in nodes.items() if node.op in _CALLS
        }

    def passed_arguments(self, key: NodeKey) -> Iterator[tuple[int, NodeKey]]:
        """Yield (position of the data input, placeholder) for each argument of the call ``key``.

        An argument is a data input that the call passes to a called graph.
        """
        for target in self._targets.get(key, ()):
            yield from enumerate(target, _CALLS[self._nodes[key].op].skipped)

    def loop_bodies(self) -> frozenset[int]:
        """Return the graphs that loops call, directly or indirectly."""
        loops = (targets for (graph, name), targets in self._targets.items() if self._nodes[graph, name].op in _LOOPS)
        return self.reachable(target[0][0] for targets in loops for target in targets)

    def uncalled_functions(self) -> list[list[NodeKey]]:
        """Return the placeholders of each function that no graph calls.

        Graphs whose placeholders have a scope are excluded: they are bodies of loops and branches.
        """
        called = {target[0][0] for targets in self._targets.values() for target in targets if target}
        functions = (function for group in _functions_by_arity(self._nodes.values()).values() for function in group)
        return [function for function in functions if function[0][0] not in called and "/" not in function[0][1]]

    def reachable(self, graphs: Iterable[int]) -> frozenset[int]:
        """Return ``graphs`` and all graphs that they call, directly or indirectly."""
        pending = list(graphs)
        reached = set(pending)
        while pending:
            added = self._graphs_called_by(pending.pop()) - reached
            reached |= added
            pending.extend(added)
        return frozenset(reached)

    def _graphs_called_by(self, graph: int) -> set[int]:
        called = (target for (caller, _), targets in self._targets.items() if caller == graph for target in targets)
        return {target[0][0] for target in called if target}

    def _callees(
        self, node: Definition, functions: Mapping[int, Sequence[Sequence[NodeKey]]]
    ) -> list[Sequence[NodeKey]]:
        call = _CALLS[node.op]
        arguments = [self._output(node.graph, source.name, source.slot) for source in node.inputs if not source.control]
        arguments = arguments[call.skipped :]
        ranked = []
        for function in functions.get(len(arguments), ()):
            placeholders = [self._output(*key, 0) for key in function]
            if function and function[0][0] != node.graph and all(map(_accepts, placeholders, arguments)):
                equal_count = sum(map(_is_equal, placeholders, arguments))
                shared_scopes = _shared_scopes(node.name, function[0][1])
                ranked.append(((equal_count, shared_scopes, -abs(function[0][0] - node.graph)), function))
        return [function for _, function in sorted(ranked, reverse=True)[: call.graphs]]

    def _output(self, graph: int, name: str, slot: int) -> Dims | None:
        node = self._nodes.get((graph, name))
        return node.outputs[slot] if node is not None and slot < len(node.outputs) else None


def _accepts(placeholder: Dims | None, argument: Dims | None) -> bool:
    """Return whether a placeholder of shape ``placeholder`` accepts a tensor of shape ``argument``.

    The shape of the placeholder may be less specific.
    """
    if placeholder is None or argument is None:
        return placeholder is None
    return len(placeholder) == len(argument) and all(
        size in {-1, argument_size} for size, argument_size in zip(placeholder, argument, strict=True)
    )


def _shared_scopes(left: str, right: str) -> int:
    """Return the number of scopes that two names share."""
    pairs = zip(left.split("/"), right.split("/"), strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _is_equal(placeholder: Dims | None, argument: Dims | None) -> bool:
    return placeholder == argument


def _functions_by_arity(nodes: Iterable[Definition]) -> dict[int, list[list[NodeKey]]]:
    """Return the placeholders of each graph, by number of placeholders."""
    placeholders: dict[int, list[NodeKey]] = {}
    for node in nodes:
        if node.op == _PLACEHOLDER:
            placeholders.setdefault(node.graph, []).append((node.graph, node.name))
    functions: dict[int, list[list[NodeKey]]] = {}
    for keys in placeholders.values():
        functions.setdefault(len(keys), []).append(keys)
    return functions
