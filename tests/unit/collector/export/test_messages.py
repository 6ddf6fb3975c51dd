"""Views as protobuf messages: GraphNodeProto and MultiGraphNodeProto.

An integration test compares the messages with those of TensorFlow.
"""

from fakes.nodes import CPU, node
from google.protobuf.json_format import MessageToDict
from tfprof.collector.export.messages import op_message, tree_message
from tfprof.collector.tfviews.nodes import NodeFacts, Stats
from tfprof.collector.tfviews.op import op_view
from tfprof.collector.tfviews.options import Options
from tfprof.collector.tfviews.tree import graph_view, scope_view

NODE = node("a", "Conv2D", runs=1, micros=2, accelerator_micros=3, cpu_micros=4, bytes=5, peak_bytes=6)._replace(
    facts=NodeFacts(input_shapes=((2, -1), (), (1,)), inputs=("b",)),
)
INPUT = node("b", "Const", "", residual_bytes=7, output_bytes=8, params=9, float_ops=10)

PARENT = {
    "name": "a",
    "run_count": 1,
    "exec_micros": 2,
    "accelerator_exec_micros": 3,
    "cpu_exec_micros": 4,
    "requested_bytes": 5,
    "peak_bytes": 6,
    "devices": [CPU.lower()],
    "input_shapes": {
        "0": {"dim": [{"size": "2"}, {"size": "-1"}]},
        "1": {"unknown_rank": True},
        "2": {"dim": [{"size": "1"}]},
    },
}
CHILD = {"name": "b", "residual_bytes": 7, "output_bytes": 8, "parameters": 9, "float_ops": 10}
DESCRIPTIVE_FIELDS = {"name", "devices", "input_shapes"}


def totals(*own_fields: dict[str, object]) -> dict[str, object]:
    """Return the `total_` fields of an entry that covers entries with the fields ``own_fields``."""
    return {
        f"total_{name}": value
        for fields in own_fields
        for name, value in fields.items()
        if name not in DESCRIPTIVE_FIELDS
    }


def as_dict(message: object) -> dict[str, object]:
    """Return a message as a dict, with numbers in place of their JSON texts.

    `size` keeps its text.
    """

    def numbers(value: object) -> object:
        if isinstance(value, dict):
            return {name: part if name == "size" else numbers(part) for name, part in value.items()}
        if isinstance(value, list):
            return [numbers(part) for part in value]
        return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value

    converted = numbers(MessageToDict(message, preserving_proto_field_name=True))  # type: ignore[arg-type]
    assert isinstance(converted, dict)
    return converted


def test_a_graph_message_nests_shown_children_and_the_root_has_only_totals() -> None:
    message = as_dict(tree_message(graph_view([NODE, INPUT], Options())))
    child = {**CHILD, **totals(CHILD), "total_definition_count": 1}
    parent = {**PARENT, **totals(PARENT, CHILD), "total_definition_count": 2, "children": [child]}
    assert message == {
        "name": "_TFProfRoot",
        **totals(PARENT, CHILD),
        "total_definition_count": 2,
        "children": [parent],
    }


def test_an_entry_that_is_not_accounted_has_its_own_numbers() -> None:
    nodes = [node("a", "Conv2D", micros=2), node("a/b", "Const", "", micros=3)]
    message = tree_message(scope_view(nodes, Options(account_type_regexes=("Const",))))
    assert (message.children[0].exec_micros, message.children[0].total_exec_micros) == (2, 5)


def test_each_op_type_is_nested_in_the_one_before_and_lists_its_nodes() -> None:
    message = as_dict(op_message(op_view([NODE, INPUT], Options())))
    const = {**CHILD, "name": "Const", **totals(PARENT, CHILD)}
    conv = {**PARENT, "name": "Conv2D", **totals(PARENT)}
    for entry in (const, conv):
        for field in ("run_count", "total_run_count", "devices", "input_shapes"):
            entry.pop(field, None)
    const["graph_nodes"] = [{**CHILD, **totals(CHILD), "total_definition_count": 1}]
    conv["graph_nodes"] = [{**PARENT, **totals(PARENT), "total_definition_count": 1}]
    root = {"name": "_TFProfRoot", **totals(PARENT, CHILD), "children": [{**const, "children": [conv]}]}
    root.pop("total_run_count")
    assert message == root


def test_a_chain_of_ten_thousand_entries_can_be_nested() -> None:
    size = 10_000
    facts = [NodeFacts(inputs=(f"n{number + 1:06}",)) for number in range(size)]
    nodes = [INPUT._replace(name=f"n{number:06}", stats=Stats(micros=1), facts=facts[number]) for number in range(size)]
    message = tree_message(graph_view(nodes, Options(max_depth=size + 1)))
    depth = 0
    while message.children:
        message, depth = message.children[0], depth + 1
    assert depth == size
