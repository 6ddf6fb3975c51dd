"""The scope view's rules, on nodes made by hand.

An integration test compares the view with TensorFlow's own.
"""

from fakes.nodes import node
from tfprof.collector.tfviews.options import Options
from tfprof.collector.tfviews.tree import Branch, TreeView, scope_view

NODES = [
    node("a/x/one", "Conv2D", micros=1),
    node("a/x/two", "MatMul", micros=2),
    node("b", "MatMul", micros=4),
    node("b/three", "Conv2D", micros=8),
    node("c", "Const", ""),
]


def view(**options: object) -> TreeView:
    """Return the view of NODES."""
    return scope_view(NODES, Options(max_depth=100, **options))  # type: ignore[arg-type]


def text(branch: Branch) -> str:
    """Return a tree as text: names, a mark where an entry is not accounted, totals of micros."""
    children = " ".join(map(text, branch.children))
    suffix = f"({children})" if children else ""
    return f"{branch.name}{'' if branch.accounted else '?'}:{branch.total.micros}" + suffix


def test_names_without_a_node_are_scopes_and_count_as_definitions() -> None:
    result = view()
    assert text(result.root) == "_TFProfRoot?:15(a:3(a/x:3(a/x/one:1 a/x/two:2)) b:12(b/three:8) c:0)"
    assert result.root.definitions == 7
    assert result.root.children[0].nodes == ()
    assert result.root.children[1].nodes == (NODES[2],)


def test_an_unaccounted_entry_stays_above_accounted_ones_and_its_numbers_count() -> None:
    result = view(account_type_regexes=("Conv2D",))
    assert text(result.root) == "_TFProfRoot?:13(a?:1(a/x?:1(a/x/one:1)) b?:12(b/three:8))"
    assert result.accounted == {"a/x/one", "b/three"}
    assert (result.nodes, result.accounted_entries) == (5, 5)


def test_scopes_have_their_own_op_type() -> None:
    assert text(view(account_type_regexes=("_kTFScopeParent",)).root) == "_TFProfRoot?:0(a:0(a/x:0))"


def test_without_accounted_nodes_only_the_root_is_left() -> None:
    assert text(view(account_type_regexes=()).root) == "_TFProfRoot?:0"
    assert text(scope_view([], Options()).root) == "_TFProfRoot?:0"


def test_every_slash_of_a_name_ends_a_scope() -> None:
    odd_nodes = [node("/a", "Add", micros=1), node("b//c", "Add", micros=2), node("d/", "Add", micros=4)]
    root = scope_view(odd_nodes, Options()).root
    assert text(root) == "_TFProfRoot?:7(:1(/a:1) b:2(b/:2(b//c:2)) d:4(d/:4))"


def test_children_are_in_bytewise_order() -> None:
    names = ["a", "a-b", "a/b", "a0", "\udcff", "é", "😀"]
    root = scope_view([node(name, "Add") for name in names], Options()).root
    assert [child.name for child in root.children] == ["a", "a-b", "a0", "é", "😀", "\udcff"]
