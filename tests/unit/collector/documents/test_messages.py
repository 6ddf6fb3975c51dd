"""Messages of views as JSON: protobuf's own names and values, at any depth.

Tests collector/documents/exact_view.py, collector/documents/options.py,
collector/documents/text.py.
"""

import json
import subprocess
import sys

from google.protobuf.json_format import ParseDict
from tfprof.collector.documents.messages import message_document
from tfprof.collector.documents.options import options_document
from tfprof.collector.documents.text import pieces
from tfprof.collector.proto.tfprof_output_pb2 import GraphNodeProto, MultiGraphNodeProto
from tfprof.collector.tfviews.options import TABLE, from_texts


def text(message: object) -> str:
    """Return the whole JSON text of a message."""
    text = "".join(pieces({"profile": message_document(message)}))
    return text.removeprefix('{\n  "profile": ').removesuffix("}\n")


def tree() -> GraphNodeProto:
    root = GraphNodeProto(name="root", total_exec_micros=1 << 62, total_requested_bytes=-5)
    child = root.children.add(name='a "quoted" é\n', exec_micros=3, devices=["cpu:0"])
    child.input_shapes[10].dim.add(size=-1)
    child.input_shapes[2].unknown_rank = True
    child.children.add(name="a/b")
    root.children.add(name="c").tensor_value.value_double.extend([1.5, 2.0])
    return root


def test_protobuf_parses_the_text_as_the_same_message() -> None:
    assert ParseDict(json.loads(text(tree())), GraphNodeProto()) == tree()
    entry = MultiGraphNodeProto(name="op", exec_micros=1)
    entry.graph_nodes.add(name="n", run_count=2, total_run_count=2)
    assert ParseDict(json.loads(text(entry)), MultiGraphNodeProto()) == entry


def test_numbers_are_json_numbers_even_if_0() -> None:
    document = json.loads(text(tree()))
    assert (document["total_exec_micros"], document["total_requested_bytes"], document["exec_micros"]) == (
        1 << 62,
        -5,
        0,
    )
    assert (document["devices"], document["input_shapes"]) == ([], {})
    assert document["children"][0]["input_shapes"] == {"2": {"unknown_rank": True}, "10": {"dim": [{"size": -1}]}}
    assert document["children"][1]["tensor_value"] == {"value_double": [1.5, 2.0]}
    assert "tensor_value" not in document


def test_each_entry_has_its_own_line() -> None:
    lines = text(tree()).strip().splitlines()
    assert [line.split(",")[0] for line in lines] == [
        '{"name":"root"',
        '{"name":"a \\"quoted\\" \\u00e9\\n"',
        '{"name":"a/b"',
        '{"name":"c"',
    ]


def test_a_chain_of_any_depth_is_written_and_can_be_parsed() -> None:
    root = message = MultiGraphNodeProto(name="0")
    for number in range(1, 5000):
        message = message.children.add(name=str(number), exec_micros=number)
    json_text = text(root)
    code = (
        "import json, sys, threading\n"
        "sys.setrecursionlimit(10**6); threading.stack_size(512 << 20)\n"
        "def read():\n"
        "    root, depth = json.load(sys.stdin), 1\n"
        "    while root['children']: (root,) = root['children']; depth += 1\n"
        "    print(depth, root['name'], root['exec_micros'])\n"
        "thread = threading.Thread(target=read); thread.start(); thread.join()"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], input=json_text, capture_output=True, text=True, check=True
    )
    assert completed.stdout.split() == ["5000", "4999", "4999"]


def test_options_are_listed_by_name_with_their_values() -> None:
    texts = {"select": "micros,bytes", "show_name_regexes": "a,b", "output": "file:outfile=x", "max_depth": "3"}
    document = options_document(from_texts(texts))
    assert list(document) == [option.name for option in TABLE]
    assert (document["select"], document["show_name_regexes"]) == (["bytes", "micros"], ["a", "b"])
    assert (document["output"], document["max_depth"], document["account_displayed_op_only"]) == (
        "file:outfile=x",
        3,
        False,
    )
    assert options_document(from_texts({}))["output"] == "stdout"
    json.dumps(document)
