"""The text of the scope view and of the graph view.

Covers cases that the comparison with TensorFlow's own text misses or reaches only by chance.
"""

import pytest
from fakes.nodes import CPU, node
from tfprof.collector.render.legends import TREE_ORDER, columns
from tfprof.collector.render.tree_text import lines
from tfprof.collector.tfviews.nodes import Node, NodeFacts
from tfprof.collector.tfviews.option_values import SELECTS
from tfprof.collector.tfviews.options import Options
from tfprof.collector.tfviews.parity import Parity
from tfprof.collector.tfviews.tree import graph_view, scope_view

PLACED_NODE = node(
    "a/w", "VariableV2", micros=1500, cpu_micros=1500, bytes=2_000_000, params=1200, float_ops=3, runs=2
)._replace(
    facts=NodeFacts(parameter_shape=(30, 40), input_shapes=((2, -1), ()), types=("_trainable_variables",)),
)
UNPLACED_NODE = node("b", "NoOp", "")


def rows(*nodes: Node, select: set[str], **options: object) -> list[str]:
    """Return the text of the scope view from the legend on."""
    view_options = Options(select=frozenset(select), **options)  # type: ignore[arg-type]
    text = list(lines("scope", scope_view(nodes, view_options), view_options.select))
    return text[text.index("Profile:") + 1 :]


def test_a_row_has_own_and_total_numbers_of_each_column() -> None:
    assert rows(PLACED_NODE, UNPLACED_NODE, select={"micros", "bytes"}) == [
        "node name | requested bytes | total execution time | accelerator execution time | cpu execution time",
        "_TFProfRoot (--/2.00MB, --/1.50ms, --/0us, --/1.50ms)",
        "  a (0B/2.00MB, 0us/1.50ms, 0us/0us, 0us/1.50ms)",
        "    a/w (2.00MB/2.00MB, 1.50ms/1.50ms, 0us/0us, 1.50ms/1.50ms)",
        "  b (0B/0B, 0us/0us, 0us/0us, 0us/0us)",
    ]


def test_static_columns_come_first_and_an_unknown_device_has_no_text() -> None:
    select = {"params", "float_ops", "device", "op_types", "occurrence", "input_shapes"}
    device = CPU.lower()
    assert rows(PLACED_NODE, UNPLACED_NODE, select=select) == [
        "node name | # parameters | # float_ops | assigned devices | op types | op count (run|defined) | input shapes",
        "_TFProfRoot (--/1.20k params, --/3 flops, _kTFScopeParent, --/2|--/3, )",
        "  a (0/1.20k params, 0/3 flops, _kTFScopeParent, 0/2|1/2, )",
        (
            f"    a/w (30x40, 1.20k/1.20k params, 3/3 flops, {device}, {device}|VariableV2|_trainable_variables,"
            " 2/2|1/1, 0:2x-1|1:unknown)"
        ),
        "  b (0/0 params, 0/0 flops, NoOp, 0/0|1/1, )",
    ]


def test_entries_that_are_not_accounted_have_dashes_as_own_numbers() -> None:
    nodes = [node("a", "Add", micros=1, params=7), node("a/b", "Mul", micros=2)]
    assert rows(*nodes, select={"accelerator_micros", "params", "occurrence"}, account_type_regexes=("Mul",))[1:] == [
        "_TFProfRoot (--/7 params, --/0us, --/0|--/2)",
        "  a (--/7 params, --/0us, --/0|--/2)",
        "    a/b (0/0 params, 0us/0us, 0/0|1/1)",
    ]


def test_an_empty_selection_leaves_empty_parentheses() -> None:
    assert rows(UNPLACED_NODE, select=set()) == ["node name | ", "_TFProfRoot ()", "  b ()"]


def test_a_tensor_value_is_no_column() -> None:
    view = graph_view([UNPLACED_NODE], Options())
    text = list(lines("graph", view, frozenset({"tensor_value"})))
    assert text[3].startswith("tensor_value: no column")
    assert text[4:] == ["", "Profile:", "node name | ", "_TFProfRoot ()", "  b ()"]


def test_columns_are_in_the_order_of_the_legend() -> None:
    assert set(TREE_ORDER) == set(SELECTS) - {"tensor_value"}
    assert columns(frozenset({"bytes", "float_ops", "params"}), TREE_ORDER) == ["params", "float_ops", "bytes"]


@pytest.mark.parametrize(
    ("parity", "hint"),
    [
        (Parity("1.15"), "consider filing a bug to xprof-dev@!"),
        (Parity("2.21"), "consider to post to discuss@tensorflow.org!"),
    ],
)
def test_the_notice_of_a_missing_stream_comes_first_with_the_hint_of_the_version(parity: Parity, hint: str) -> None:
    view = scope_view([], Options())
    text = "\n".join(lines("scope", view, frozenset(), missing_stream=True, parity=parity))
    assert text.startswith("\n\nFound accelerator operation but misses accelerator stream stats!\n\nIt's likely")
    assert text.partition("\n\n\nDoc:\n")[0].endswith(f"If you found your operation missing accelerator time, {hint}")
