"""The graph view's rules, on nodes made by hand.

An integration test compares the view with TensorFlow's own.
"""

from collections.abc import Iterable

from fakes.nodes import CPU
from tfprof.collector.tfviews.nodes import Node, NodeFacts, Stats
from tfprof.collector.tfviews.options import Options
from tfprof.collector.tfviews.tree import Branch, TreeView, graph_view


def node(name: str, inputs: Iterable[str] = (), op: str = "Add", micros: int = 1) -> Node:
    """Return a node that ran, with its inputs."""
    return Node(name, op, (CPU.lower(),), Stats(runs=1, micros=micros), NodeFacts(inputs=tuple(inputs)))


def view(*nodes: Node, **options: object) -> TreeView:
    """Return the view of nodes in name order."""
    all_options = Options(**{"max_depth": 100, **options})  # type: ignore[arg-type]
    return graph_view(sorted(nodes, key=lambda graph_node: graph_node.name), all_options)


def text(branch: Branch) -> str:
    """Return a tree as text: names and totals of micros."""
    children = " ".join(map(text, branch.children))
    suffix = f"({children})" if children else ""
    return f"{branch.name.replace('_TFProfRoot', 'root')}:{branch.total.micros}" + suffix


DIAMOND = (node("out", ["right", "left"]), node("left", ["in"]), node("right", ["in"]), node("in", op="Const"))


def test_inputs_are_below_their_first_consumer_in_input_order() -> None:
    assert text(view(*DIAMOND, order_by="").root) == "root:4(out:4(right:2(in:1) left:1))"
    assert text(view(*DIAMOND).root) == "root:4(out:4(left:1 right:2(in:1)))"


def test_nodes_without_consumers_are_at_the_top_in_name_order() -> None:
    assert text(view(node("b", ["x"]), node("a", ["x"]), node("x")).root) == "root:3(a:2(x:1) b:1)"


def test_an_input_appears_only_where_it_is_first_met() -> None:
    assert text(view(node("a", ["b", "c"]), node("b", ["c"]), node("c")).root) == "root:3(a:3(b:2(c:1)))"


def test_nodes_below_dropped_ones_move_up() -> None:
    result = view(*DIAMOND, account_type_regexes=("Const",))
    assert text(result.root) == "root:1(in:1)"
    assert result.accounted == {"in"}
    assert (result.nodes, result.accounted_entries) == (4, 1)


def test_unknown_names_and_repeated_inputs_are_ignored() -> None:
    assert text(view(node("a", ["b", "nothing", "b"]), node("b")).root) == "root:2(a:2(b:1))"


def test_a_cycle_with_a_consumer_is_walked_once() -> None:
    assert text(view(node("out", ["a"]), node("a", ["b"]), node("b", ["a"])).root) == "root:3(out:3(a:2(b:1)))"


def test_a_cycle_without_a_consumer_is_counted_as_unreached() -> None:
    result = view(node("a", ["b"]), node("b", ["a"]), node("c"))
    assert text(result.root) == "root:1(c:1)"
    assert result.unreached == 2
    assert result.accounted == {"c"}


def test_a_chain_of_a_hundred_thousand_entries_is_walked() -> None:
    size = 100_000
    nodes = [node(f"n{at:06}", [f"n{at + 1:06}"] if at < size - 1 else []) for at in range(size)]
    result = graph_view(nodes, Options(max_depth=10**6))
    assert result.shown == result.root.total.micros == size
