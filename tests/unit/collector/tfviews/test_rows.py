"""The rows of views in tfprof's own layout."""

from dataclasses import replace

from fakes.nodes import node, with_stack
from tfprof.collector.tfviews.code import code_view
from tfprof.collector.tfviews.nodes import Frame, Node, Stats, total_of
from tfprof.collector.tfviews.op import op_view
from tfprof.collector.tfviews.options import Options
from tfprof.collector.tfviews.places import Places, group_added
from tfprof.collector.tfviews.rows import (
    Limit,
    RowFilter,
    VisibleRows,
    extremes,
    op_rows,
    tree_rows,
    with_unattributed_row,
)
from tfprof.collector.tfviews.tree import graph_view, scope_view

MICROS = Stats._fields.index("micros")
ORDER = Options(order_by="micros", max_depth=1 << 62)
HOME, LIBRARY = "/home/ada/train.py", "/usr/lib/python3.11/site-packages/keras/layer.py"
MAIN, NET, KERAS = Frame(HOME, 9, "main"), Frame(HOME, 4, "net"), Frame(LIBRARY, 7, "call")


def limit(nodes: list[Node], *counters: int) -> Limit:
    return Limit(counters or (MICROS,), total_of(nodes))


def outline(rows: VisibleRows) -> list[tuple[int, str, int]]:
    return [(row.depth, row.name, row.total.micros) for row in rows.rows]


def test_op_types_are_in_order_of_time_and_small_ones_share_a_row() -> None:
    nodes = [
        node("a", "Add", micros=3, runs=1),
        node("b", "Mul", micros=992, runs=2),
        node("c", "Sub", micros=4, runs=1),
    ]
    nodes += [node("d", "Cast", micros=1, runs=5), node("e", "Const")]
    rows = op_rows(op_view(nodes, ORDER), {}, limit(nodes), Places(nodes).line)
    assert outline(rows) == [(0, "Mul", 992), (0, "(3 others)", 8)]
    assert (rows.empty_count, rows.small_count, rows.rows[1].total.runs) == (1, 3, 7)
    assert sum(row.total.micros for row in rows.rows) == rows.total.micros == 1000


def test_a_single_small_op_type_has_its_own_row() -> None:
    nodes = [node("a", "Add", micros=1), node("b", "Mul", micros=999)]
    rows = op_rows(op_view(nodes, ORDER), {}, limit(nodes), Places(nodes).line)
    assert outline(rows) == [(0, "Mul", 999), (0, "Add", 1)]


def test_without_a_limit_every_entry_has_a_row() -> None:
    nodes = [node("a", "Add"), node("b", "Mul", micros=999)]
    rows = op_rows(op_view(nodes, ORDER), {}, Limit((), total_of(nodes)), Places(nodes).line)
    assert outline(rows) == [(0, "Mul", 999), (0, "Add", 0)]


def test_a_row_is_kept_if_any_selected_counter_is_large() -> None:
    nodes = [node("a", "Add", micros=9), node("b", "VariableV2", params=5)]
    two_counters = limit(nodes, MICROS, Stats._fields.index("params"))
    assert len(op_rows(op_view(nodes, ORDER), {}, two_counters, Places(nodes).line).rows) == 2


def test_step_times_cover_all_nodes_of_a_row() -> None:
    nodes = [node("a", "Add", micros=9), node("b", "Add", micros=3), node("c", "Sub", micros=1)]
    rows = op_rows(op_view(nodes, ORDER), {"a": [4, 5], "b": [3, 0]}, limit(nodes), Places(nodes).line)
    assert [row.times for row in rows.rows] == [(7, 5), ()]


def scope_rows(nodes: list[Node], times: dict[str, list[int]] | None = None) -> VisibleRows:
    row_filter = RowFilter("scope", limit(nodes))
    return tree_rows(scope_view(nodes, ORDER), times or {}, row_filter, "micros", Places(nodes).line)


def test_a_scope_and_an_only_child_with_all_its_time_share_a_row() -> None:
    nodes = [node("net/conv/Conv2D", "Conv2D", micros=600), node("net/conv/bias/Add", "Add", micros=300)]
    nodes += [node("net/conv/shape", "Const"), node("loss/a/b/Mean", "Mean", micros=99), node("z", "Mul", micros=1)]
    rows = scope_rows(nodes, {"net/conv/Conv2D": [1, 2], "net/conv/bias/Add": [10, 20]})
    assert outline(rows) == [(0, "net/conv", 900), (1, "Conv2D", 600), (1, "bias/Add", 300), (0, "loss/a/b/Mean", 99)]
    assert [row.times for row in rows.rows] == [(11, 22), (1, 2), (10, 20), ()]
    assert [row.op for row in rows.rows] == ["Conv2D", "Conv2D", "Add", "Mean"]
    assert (rows.empty_count, rows.small_count) == (1, 1)
    assert rows.rows[0].key == "net/conv"


def test_times_and_lines_of_a_row_cover_entries_below_the_maximum_depth() -> None:
    nodes = [
        with_stack(node("net/a/Relu", "Relu", micros=10), NET),
        with_stack(node("net/b/x/MatMul", "MatMul", micros=90), MAIN),
    ]
    times = {"net/a/Relu": [4, 6], "net/b/x/MatMul": [30, 60]}
    view = scope_view(nodes, replace(ORDER, max_depth=2))
    (row,) = tree_rows(view, times, RowFilter("scope", limit(nodes)), "micros", Places(nodes).line).rows
    assert (row.key, row.total.micros, row.times) == ("net", 100, (34, 66))
    assert (row.op, row.line) == ("MatMul", "train.py:9")


def test_times_leave_out_hidden_entries_if_the_total_does() -> None:
    nodes = [node("net", "NoOp", micros=5), node("net/a", "Relu", micros=10), node("net/b", "MatMul", micros=90)]
    times = {"net": [5, 0], "net/a": [4, 6], "net/b": [30, 60]}
    options = replace(ORDER, hide_name_regexes=("net/b",), account_displayed_op_only=True)
    rows = tree_rows(
        scope_view(nodes, options), times, RowFilter("scope", limit(nodes)), "micros", Places(nodes).line
    ).rows
    assert [(row.key, row.total.micros, row.times) for row in rows] == [("net", 15, (9, 6)), ("net/a", 10, (4, 6))]


def test_a_scope_with_own_time_keeps_its_row() -> None:
    nodes = [node("a", "Mul", micros=100), node("a/b", "Add", micros=100)]
    assert outline(scope_rows(nodes)) == [(0, "a", 200), (1, "b", 100)]


def test_graph_nodes_without_time_are_left_out_and_their_inputs_move_up() -> None:
    def with_inputs(graph_node: Node, *inputs: str) -> Node:
        return graph_node._replace(facts=replace(graph_node.facts, inputs=inputs))

    nodes = [
        with_inputs(node("a", "Mul", micros=10)),
        with_inputs(node("b", "Identity"), "a", "c"),
        with_inputs(node("c", "Conv2D", micros=80)),
        with_inputs(node("d", "Add", micros=10), "b"),
    ]
    rows = tree_rows(graph_view(nodes, ORDER), {}, RowFilter("graph", limit(nodes)), "micros", Places(nodes).line)
    assert outline(rows) == [(0, "d", 100), (1, "c", 80), (1, "a", 10)]
    assert [row.op for row in rows.rows] == ["Add", "Conv2D", "Mul"]
    assert (rows.empty_count, rows.small_count) == (1, 0)


def test_added_nodes_are_grouped_in_the_scope_and_the_graph_view() -> None:
    constant = node("ConstantFolding/x", "Const", micros=4)._replace(in_graph=False)
    argument = node("_arg_x_0_0", "_Arg", micros=2)._replace(in_graph=False)
    for name, view in (("scope", scope_view), ("graph", graph_view)):
        nodes, _ = group_added([constant, argument, node("a", "Mul", micros=10)], linked=name == "graph")
        rows = tree_rows(view(nodes, ORDER), {}, RowFilter(name, limit(nodes)), "micros", Places(nodes).line)
        assert [
            (depth, text.removeprefix("(added by TensorFlow)/"), micros) for depth, text, micros in outline(rows)
        ] == [
            (0, "a", 10),
            (0, "(added by TensorFlow)", 6),
            (1, "Const", 4),
            (1, "_Arg", 2),
        ]


def test_the_code_view_can_show_only_the_users_own_calls() -> None:
    nodes = [
        with_stack(node("a", "Conv2D", micros=60), MAIN, KERAS, NET, KERAS),
        with_stack(node("b", "Add", micros=30), MAIN, KERAS),
        with_stack(node("c", "Const"), MAIN),
        node("d", "GatherV2", micros=10),
    ]
    view, lookup = code_view(nodes, ORDER), Places(nodes).line
    own_rows = tree_rows(view, {}, RowFilter("code", limit(nodes), own_only=True), "micros", lookup)
    assert outline(own_rows) == [(0, "train.py:9:main", 90), (1, "train.py:4:net", 60)]
    assert (own_rows.library_count, own_rows.empty_count, own_rows.small_count) == (2, 0, 0)
    all_rows = tree_rows(view, {}, RowFilter("code", limit(nodes)), "micros", lookup)
    assert [depth for depth, _, _ in outline(all_rows)] == [0, 1, 2, 3]
    with_remainder = with_unattributed_row(own_rows, total_of(nodes), limit(nodes))
    assert outline(with_remainder)[-1] == (0, "(no line of Python)", 10)
    assert with_remainder.total.micros == 100


def test_the_line_of_a_row_is_the_users_innermost_line_or_that_of_the_forward_node() -> None:
    nodes = [
        with_stack(node("conv", "Conv2D", micros=60), MAIN, NET, KERAS),
        with_stack(node("gradients/conv_grad/Filter", "Filter", micros=50), MAIN, KERAS),
        with_stack(node("adam", "Adam", micros=40), MAIN, KERAS),
        with_stack(node("lib", "Lib", micros=30), KERAS),
    ]
    rows = op_rows(op_view(nodes, ORDER), {}, limit(nodes), Places(nodes).line)
    assert [(row.name, row.line) for row in rows.rows] == [
        ("Conv2D", "train.py:4"),
        ("Filter", "train.py:4"),
        ("Adam", "train.py:9"),
        ("Lib", ""),
    ]


def test_a_deep_tree_is_walked_without_recursion() -> None:
    nodes = [
        graph_node._replace(facts=replace(graph_node.facts, inputs=(f"n{at + 1:05}",)))
        for at, graph_node in enumerate(node(f"n{at:05}", "Mul", micros=1) for at in range(5000))
    ]
    rows = tree_rows(
        graph_view(nodes, ORDER), {}, RowFilter("graph", Limit((), total_of(nodes))), "micros", Places(nodes).line
    )
    assert [row.depth for row in rows.rows] == list(range(5000))


def test_a_sum_of_medians_is_within_the_extremes() -> None:
    assert extremes([438, 525], 432.4) == (432, 525)
    assert extremes([438, 525], 500) == (438, 525)
    assert extremes([438, 525], 530) == (438, 530)
