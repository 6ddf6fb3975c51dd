"""The code view's rules, on nodes made by hand.

An integration test compares the view with TensorFlow's own.
"""

import pytest
from fakes.nodes import node, with_stack
from tfprof.collector.tfviews.code import code_view, frame_text
from tfprof.collector.tfviews.nodes import Frame
from tfprof.collector.tfviews.options import Options
from tfprof.collector.tfviews.parity import Parity
from tfprof.collector.tfviews.places import basename, forward_name
from tfprof.collector.tfviews.tree import Branch, TreeView

TRAIN, LAYER, LOSS = Frame("/home/ada/train.py", 9, "main"), Frame("nn.py", 3, "layer"), Frame("nn.py", 5, "loss")
EXACT = Parity(exact=True)
NODES = [
    with_stack(node("a/MatMul", "MatMul", micros=1), TRAIN, LAYER),
    with_stack(node("a/add", "Add", micros=2), TRAIN, LAYER),
    with_stack(node("b", "Sub", micros=4), TRAIN, LOSS),
    with_stack(node("c", "Const", micros=8), TRAIN),
    with_stack(node("gradients/a/MatMul_grad/MatMul", "MatMul", micros=16), TRAIN, LOSS),
    with_stack(node("gradients/b_grad/Neg", "Neg", micros=32), TRAIN),
    node("without", "Const", micros=64),
]
WHOLE_TREE = (
    "_TFProfRoot?:63(train.py:9:main:15(nn.py:3:layer:3 nn.py:5:loss:4) "
    "train.py:9:main (gradient):48(nn.py:3:layer (gradient):16 nn.py:5:loss (gradient):32))"
)


def view(parity: Parity = EXACT, **options: object) -> TreeView:
    """Return the view of NODES."""
    return code_view(NODES, Options(**{"max_depth": 100, **options}), parity)  # type: ignore[arg-type]


def text(branch: Branch) -> str:
    """Return a tree as text: names, a mark where an entry is not accounted, totals of micros."""
    children = " ".join(map(text, branch.children))
    suffix = f"({children})" if children else ""
    return f"{branch.name}{'' if branch.accounted else '?'}:{branch.total.micros}" + suffix


def test_nodes_are_below_their_calls_and_gradients_beside_their_forward_nodes() -> None:
    result = view()
    assert text(result.root) == WHOLE_TREE
    assert (result.nodes, len(result.accounted), result.accounted_entries, result.unreached) == (6, 6, 6, 0)
    forward_calls, gradients = result.root.children
    assert forward_calls.nodes == (NODES[3],)
    assert forward_calls.children[0].nodes == (NODES[0], NODES[1])
    assert forward_calls.children[0].own.micros == 3
    assert gradients.nodes == ()
    assert gradients.children[0].nodes == (NODES[4],)


def test_unsorted_calls_are_in_order_of_first_use() -> None:
    nodes = [with_stack(node("a", "Add"), TRAIN, LOSS), with_stack(node("b", "Add"), TRAIN, LAYER)]
    by_first_use = code_view(nodes, Options(order_by=""), EXACT).root.children[0]
    assert [call.name for call in by_first_use.children] == ["nn.py:5:loss", "nn.py:3:layer"]
    by_micros = view(order_by="micros")
    assert [call.total.micros for call in by_micros.root.children] == [48, 15]
    by_nodes = view(order_by="occurrence").root.children[0]
    assert [len(call.nodes) for call in by_nodes.children] == [2, 1]


def test_a_call_that_is_not_accounted_stays_above_its_accounted_callees() -> None:
    assert text(view(account_type_regexes=("MatMul",)).root) == (
        "_TFProfRoot?:17(train.py:9:main?:1(nn.py:3:layer:1)"
        " train.py:9:main (gradient)?:16(nn.py:3:layer (gradient):16))"
    )


def test_a_node_that_two_patterns_match_counts_twice_but_is_listed_once() -> None:
    call = view(account_type_regexes=("MatMul", "M.*")).root.children[0].children[0]
    assert (call.own.micros, call.total.micros) == (2, 2)
    assert call.nodes == (NODES[0],)


def test_calls_with_the_same_text_below_one_caller_are_merged() -> None:
    other_frame = Frame("/elsewhere/nn.py", 3, "layer", start_line=1)
    result = code_view([*NODES[:1], with_stack(node("z", "Sub", micros=100), TRAIN, other_frame)], Options(), EXACT)
    assert text(result.root) == "_TFProfRoot?:101(train.py:9:main:101(nn.py:3:layer:101))"


def test_gradients_of_nodes_without_a_stack_are_only_counted() -> None:
    gradient_nodes = [
        with_stack(node("gradients/without_grad/x", "Neg", micros=1), TRAIN),
        with_stack(node("gradients/without_grad/y", "Neg", micros=1), TRAIN),
    ]
    result = code_view([*NODES, *gradient_nodes], Options(), EXACT)
    assert text(result.root) == WHOLE_TREE
    assert result.unreached == 2


def test_gradients_of_one_line_are_in_name_order() -> None:
    names = ("gradients/a_grad/z", "tower/gradients/b_grad/x", "gradients/b_grad/y")
    nodes = [with_stack(node(name, "Add"), TRAIN) for name in sorted(("a", "b", *names))]
    gradient = code_view(nodes, Options(), EXACT).root.children[1]
    assert [gradient_node.name for gradient_node in gradient.nodes] == sorted(names)


def test_trimming_a_call_removes_its_callees_and_hiding_does_not() -> None:
    assert text(view(trim_name_regexes=("train.*main",)).root).startswith("_TFProfRoot?:63(train.py:9:main (gradient)")
    result = view(hide_name_regexes=("train.*",))
    assert [call.name for call in result.root.children] == [
        "nn.py:3:layer",
        "nn.py:3:layer (gradient)",
        "nn.py:5:loss",
        "nn.py:5:loss (gradient)",
    ]
    assert (result.hidden, result.shown) == (2, 4)


@pytest.mark.parametrize("options", [{"max_depth": 0}, {"max_depth": 1}, {"trim_name_regexes": ("_TFProfRoot",)}])
def test_a_bare_root_is_returned_where_the_tf_profiler_crashes(options: dict[str, object]) -> None:
    assert text(view(**options).root) == "_TFProfRoot?:63"


def test_hidden_calls_use_up_depth() -> None:
    assert text(view(max_depth=2, hide_name_regexes=("train.*",)).root) == "_TFProfRoot?:63"


def test_minima_apply_to_totals_and_the_minimum_of_runs_has_no_effect() -> None:
    assert text(view(min_micros=4, min_occurrence=99).root) == WHOLE_TREE.replace("nn.py:3:layer:3 ", "")
    with_params = [original._replace(stats=original.stats._replace(params=original.stats.micros)) for original in NODES]
    result = code_view(with_params, Options(min_params=5), EXACT)
    assert "nn.py:5:loss:4" not in text(result.root)
    assert "train.py:9:main:15" in text(result.root)


def test_totals_always_include_hidden_entries() -> None:
    result = view(account_displayed_op_only=True, show_name_regexes=(".*main",))
    assert text(result.root) == "_TFProfRoot?:63(train.py:9:main:15)"


def test_the_start_is_the_topmost_match() -> None:
    assert text(view(start_name_regexes=("nn.*",)).root) == (
        "_TFProfRoot?:63(nn.py:3:layer:3 nn.py:3:layer (gradient):16 nn.py:5:loss:4 nn.py:5:loss (gradient):32)"
    )


def test_without_stacks_there_is_no_code_trace() -> None:
    for nodes in ([], [node("a", "Add")], [with_stack(node("a", "Add"))]):
        result = code_view(nodes, Options())
        assert (result.nodes, result.accounted_entries) == (0, 0)
        assert text(result.root) == "_TFProfRoot?:0"


def test_gradients_without_forward_nodes_have_no_call() -> None:
    result = code_view([with_stack(node("gradients/a_grad/x", "Add"), TRAIN)], Options())
    assert (result.nodes, result.unreached, text(result.root)) == (1, 1, "_TFProfRoot?:0")


def test_a_gradient_in_a_loop_is_recognized_by_its_name_in_the_body() -> None:
    name = "gradient_tape/while/while_grad/body/_6/gradient_tape/while/gradients/a/MatMul_grad/MatMul"
    nodes = [*NODES[:1], with_stack(node(name, "MatMul", micros=5), LOSS)]
    assert text(code_view(nodes, Options()).root).endswith("train.py:9:main (gradient):5(nn.py:3:layer (gradient):5))")
    exact_view = code_view(nodes, Options(), EXACT)
    assert (exact_view.unreached, exact_view.root.total.micros) == (1, 1)


def test_stacks_of_a_thousand_calls_are_walked() -> None:
    stack = [Frame("deep.py", line, "call") for line in range(1000)]
    call = code_view([with_stack(node("a", "Add", micros=1), *stack)], Options(max_depth=2000)).root
    for _ in stack:
        (call,) = call.children
    assert (call.name, call.total.micros) == ("deep.py:999:call", 1)


@pytest.mark.parametrize(
    ("name", "forward"),
    [
        ("gradients/a/b_grad/c", "a/b"),
        ("tower/gradients/a_grad/", "a"),
        ("gradients/a_grad/b_grad/c", "a"),
        ("gradients/gradients/a_grad/b", "gradients/a"),
        ("y_grad/gradients/a/b", "a/b"),  # `_grad` comes first: the forward name extends to the end of the name
        ("y_grad/gradients/", ""),
        ("gradients/_grad/x", None),
        ("gradients/Shape", None),
        ("a_grad/x", None),
        ("a", None),
    ],
)
def test_the_forward_node_is_between_gradients_and_grad(name: str, forward: str | None) -> None:
    assert forward_name(name) == forward


@pytest.mark.parametrize(
    ("file", "base"),
    [
        ("/a/b.py", "b.py"),
        ("b.py", "b.py"),
        ("a/", ""),
        ("", ""),
        ("gs://bucket/b.py", "b.py"),
        ("gs://bucket", ""),
        ("x://y", "y"),
        ("1s://b", "b"),
        ("<stdin>", "<stdin>"),
    ],
)
def test_the_base_name_follows_the_last_slash(file: str, base: str) -> None:
    assert basename(file) == base


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        ("a" * 19, "a" * 19),
        ("a" * 20, "a" * 17 + "..."),
        ("é" * 9, "é" * 9),
        ("é" * 10, "é" * 8 + "\udcc3..."),
        ("", ""),
    ],
)
def test_long_names_of_functions_are_truncated(function: str, shown: str) -> None:
    assert frame_text(Frame("/a/b.py", -1, function)) == f"b.py:-1:{shown}"
