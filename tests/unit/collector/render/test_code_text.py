"""The code view's text and message.

Covers cases that the comparison with TensorFlow's own text misses or reaches only by chance.
"""

from fakes.nodes import CPU, GPU, node, with_stack
from tfprof.collector.export.messages import code_message
from tfprof.collector.render.tree_text import lines
from tfprof.collector.tfviews.code import code_view
from tfprof.collector.tfviews.nodes import Frame, Node
from tfprof.collector.tfviews.option_values import SELECTS
from tfprof.collector.tfviews.options import Options
from tfprof.commands.streams import clean

MAIN, LAYER = Frame("train.py", 9, "main"), Frame("nn.py", 3, "layer")
TIMES = "total execution time | accelerator execution time | cpu execution time"
NODES = [
    with_stack(
        node("a", "Conv2D", GPU.lower(), micros=2000, accelerator_micros=1500, cpu_micros=500, params=1200), MAIN, LAYER
    ),
    with_stack(node("b", "Add", "", bytes=5, float_ops=7), MAIN, LAYER),
    with_stack(node("c", "MatMul", CPU.lower(), micros=1, cpu_micros=1), MAIN),
]


def rows(nodes: list[Node], *select: str, **options: object) -> list[str]:
    """Return the text of the code view from the legend on."""
    view_options = Options(select=frozenset(select), **options)  # type: ignore[arg-type]
    text = list(lines("code", code_view(nodes, view_options), view_options.select))
    return text[text.index("Profile:") + 1 :]


def test_columns_have_the_order_of_the_op_view() -> None:
    assert rows(NODES, "params", "micros", "bytes", "float_ops") == [
        f"node name | requested bytes | {TIMES} | # parameters | # float_ops",
        "_TFProfRoot (--/5B, --/2.00ms, --/1.50ms, --/501us, --/1.20k params, --/7 flops)",
        "  train.py:9:main (0B/5B, 1us/2.00ms, 0us/1.50ms, 1us/501us, 0/1.20k params, 0/7 flops)",
        "    nn.py:3:layer (5B/5B, 2.00ms/2.00ms, 1.50ms/1.50ms, 500us/500us, 1.20k/1.20k params, 7/7 flops)",
    ]


def test_devices_and_types_cover_all_nodes_of_a_line() -> None:
    layer_nodes = [node for node in NODES if node.name != "c"]
    assert rows(layer_nodes, "device", "op_types") == [
        "node name | assigned devices | op types",
        "_TFProfRoot ()",
        "  train.py:9:main ()",
        f"    nn.py:3:layer (|{GPU.lower()}, {GPU.lower()}|Add|Conv2D)",
    ]


def test_numbers_of_nodes_and_input_shapes_are_not_available() -> None:
    assert rows(NODES[2:], "occurrence", "input_shapes") == [
        "node name | op occurrence (run|defined) | input shapes",
        "_TFProfRoot (occurrence N/A in code view, input_shapes N/A in code view)",
        "  train.py:9:main (occurrence N/A in code view, input_shapes N/A in code view)",
    ]


def test_lines_without_accounted_nodes_have_no_own_numbers() -> None:
    assert rows(NODES, "cpu_micros", account_type_regexes=("Conv2D",))[1:] == [
        "_TFProfRoot (--/500us)",
        "  train.py:9:main (--/500us)",
        "    nn.py:3:layer (500us/500us)",
    ]


def test_a_character_that_is_cut_in_half_is_a_question_mark_in_text_and_u_fffd_in_messages() -> None:
    nodes = [with_stack(node("a", "Add"), Frame("é.py", 1, "é" * 10))]
    assert clean(rows(nodes, "cpu_micros")[2]) == f"  é.py:1:{'é' * 8}?... (0us/0us)"
    assert code_message(code_view(nodes, Options())).children[0].name == f"é.py:1:{'é' * 8}\ufffd..."


def test_stacks_of_a_thousand_calls_are_printed_and_exported() -> None:
    nodes = [with_stack(node("a", "Add", micros=3), *(Frame("deep.py", line, "call") for line in range(1000)))]
    printed = rows(nodes, *SELECTS, max_depth=2000)
    assert len(printed) == 1002
    assert printed[-1].startswith("  " * 1000 + "deep.py:999:call (")
    message = code_message(code_view(nodes, Options(max_depth=2000)))
    for _ in range(1000):
        (message,) = message.children
    assert [node.total_exec_micros for node in message.graph_nodes] == [3]
