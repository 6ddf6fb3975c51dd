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


class _CallType(NamedTuple):
    """A type of call: how many graphs it calls, and which of its inputs it passes to them.

    ``graphs_max``: the maximum number of called graphs; ``skipped_inputs``: the number of leading
    inputs that are not passed.
    """

    graphs_max: int = 1
    skipped_inputs: int = 0


_LOOPS: Final = ("While", "StatelessWhile")
_CALL_TYPES: Final = {
    **dict.fromkeys(("PartitionedCall", "StatefulPartitionedCall"), _CallType()),
    **dict.fromkeys(_LOOPS, _CallType(2)),
    **dict.fromkeys(("If", "StatelessIf"), _CallType(2, 1)),
    **dict.fromkeys(("Case", "StatelessCase"), _CallType(8, 1)),
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
        self._called_functions = {
            key: self._matching_functions(node, functions_by_arity)
            for key, node in nodes.items()
            if node.op in _CALL_TYPES
        }

    def passed_arguments(self, key: NodeKey) -> Iterator[tuple[int, NodeKey]]:
        """Yield (position of the data input, placeholder) for each argument of the call ``key``.

        An argument is a data input that the call passes to a called graph.
        """
        for function in self._called_functions.get(key, ()):
            yield from enumerate(function, _CALL_TYPES[self._nodes[key].op].skipped_inputs)

    def loop_bodies(self) -> frozenset[int]:
        """Return the graphs that loops call, directly or indirectly."""
        loop_functions = (
            functions
            for (graph, name), functions in self._called_functions.items()
            if self._nodes[graph, name].op in _LOOPS
        )
        return self.reachable(function[0][0] for functions in loop_functions for function in functions)

    def uncalled_functions(self) -> list[list[NodeKey]]:
        """Return the placeholders of each function that no graph calls.

        Graphs whose placeholders have a scope are excluded: they are bodies of loops and branches.
        """
        called_graphs = {
            function[0][0] for functions in self._called_functions.values() for function in functions if function
        }
        all_functions = (function for group in _functions_by_arity(self._nodes.values()).values() for function in group)
        return [
            function for function in all_functions if function[0][0] not in called_graphs and "/" not in function[0][1]
        ]

    def reachable(self, graphs: Iterable[int]) -> frozenset[int]:
        """Return ``graphs`` and all graphs that they call, directly or indirectly."""
        pending = list(graphs)
        reached_graphs = set(pending)
        while pending:
            new_graphs = self._graphs_called_by(pending.pop()) - reached_graphs
            reached_graphs |= new_graphs
            pending.extend(new_graphs)
        return frozenset(reached_graphs)

    def _graphs_called_by(self, graph: int) -> set[int]:
        called_functions = (
            function
            for (caller, _), functions in self._called_functions.items()
            if caller == graph
            for function in functions
        )
        return {function[0][0] for function in called_functions if function}

    def _matching_functions(
        self, node: Definition, functions: Mapping[int, Sequence[Sequence[NodeKey]]]
    ) -> list[Sequence[NodeKey]]:
        """Return the functions that fit the arguments of call ``node``, the best ones first.

        At most ``graphs_max`` functions are returned. Those with more equal shapes come first, then
        those with more shared scopes, then those in a graph with a nearer number.
        """
        call_type = _CALL_TYPES[node.op]
        arguments = [
            self._output(node.graph, source.name, source.slot) for source in node.inputs if not source.is_control
        ]
        arguments = arguments[call_type.skipped_inputs :]
        ranked_functions = []
        for function in functions.get(len(arguments), ()):
            placeholders = [self._output(*key, 0) for key in function]
            if function and function[0][0] != node.graph and all(map(_accepts, placeholders, arguments)):
                equal_count = sum(map(_is_equal, placeholders, arguments))
                shared_scopes = _shared_scopes(node.name, function[0][1])
                ranked_functions.append(((equal_count, shared_scopes, -abs(function[0][0] - node.graph)), function))
        return [function for _, function in sorted(ranked_functions, reverse=True)[: call_type.graphs_max]]

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
    """Return the number of leading scopes that two names share."""
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
