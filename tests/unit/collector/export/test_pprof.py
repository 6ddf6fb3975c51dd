"""pprof files of code views, from nodes made by hand.

An integration test compares such files with TensorFlow's.
"""

import gzip
from typing import Any

import pytest
from fakes.nodes import node, with_stack
from tfprof.collector.errors import UsageError
from tfprof.collector.export.pprof import VALUES, message, pprof
from tfprof.collector.proto.pprof_pb2 import Profile
from tfprof.collector.tfviews.code import code_view
from tfprof.collector.tfviews.nodes import Frame, Node
from tfprof.collector.tfviews.options import Options

MAIN, LAYER, MATMUL = (
    Frame("/ada/train.py", 9, "main", 1),
    Frame("/ada/nn.py", 3, "layer", 2),
    Frame("op.x.py", 5, "matmul"),
)
NODES = [
    with_stack(node("a", "MatMul", micros=1, bytes=10), MAIN, LAYER, MATMUL),
    with_stack(node("b", "Add", micros=2, bytes=20), MAIN, LAYER),
    with_stack(node("c", "Add", micros=4, bytes=40), MAIN, MATMUL),
    with_stack(node("gradients/a_grad/x", "MatMul", micros=8, bytes=80), MAIN),
]
Sample = tuple[str, list[int], list[str]]


def profile(nodes: list[Node], select: str = "micros", max_depth: int = 100, **options: object) -> Any:
    """Return the message of a view of ``nodes``."""
    view_options = Options(max_depth=max_depth, **options)  # type: ignore[arg-type]
    return message(code_view(nodes, view_options), frozenset({select}))


def samples(pprof_profile: Any) -> list[Sample]:
    """Return label, values and stack of each sample.

    A stack has `function:line` for each call, innermost first.
    """
    text = [string.decode() for string in pprof_profile.string_table]
    functions = {function.id: text[function.name] for function in pprof_profile.function}
    places = {
        location.id: f"{functions[location.line[0].function_id]}:{location.line[0].line}"
        for location in pprof_profile.location
    }
    assert all(text[sample.label[0].key] == "graph node:" for sample in pprof_profile.sample)
    return [
        (text[sample.label[0].str], list(sample.value), [places[number] for number in sample.location_id])
        for sample in pprof_profile.sample
    ]


def test_nodes_of_the_innermost_calls_are_samples_with_their_callers_lines() -> None:
    assert samples(profile(NODES)) == [
        ("a", [1, 1], ["op.x:matmul:3", "nn:layer:9"]),
        ("c", [1, 4], ["op.x:matmul:9"]),
        ("gradients/a_grad/x", [1, 8], ["op.x:matmul (gradient):3", "nn:layer (gradient):9"]),
    ]


def test_a_shown_call_includes_hidden_calls_below_it() -> None:
    hidden = profile(NODES, show_name_regexes=("train.*",))
    assert samples(hidden) == [("a", [1, 1], []), ("c", [1, 4], []), ("gradients/a_grad/x", [1, 8], [])]


def test_nodes_that_are_not_accounted_are_no_samples() -> None:
    assert [name for name, _, _ in samples(profile(NODES, account_type_regexes=("MatMul",)))] == [
        "a",
        "gradients/a_grad/x",
    ]
    assert samples(profile(NODES, account_type_regexes=())) == []


def test_a_call_with_unaccounted_callees_has_no_samples() -> None:
    nodes = [with_stack(node("a", "Add"), MAIN), with_stack(node("b", "Sub"), MAIN, LAYER)]
    assert samples(profile(nodes, account_type_regexes=("Add",))) == []


def test_functions_have_file_name_and_start_line() -> None:
    pprof_profile = profile(NODES)
    text = [string.decode() for string in pprof_profile.string_table]
    assert [
        (text[function.name], text[function.filename], function.start_line, function.id)
        for function in pprof_profile.function
    ] == [
        ("nn:layer", "/ada/nn.py", 2, 1),
        ("nn:layer (gradient)", "/ada/nn.py", 2, 3),
        ("op.x:matmul", "op.x.py", -1, 2),
        ("op.x:matmul (gradient)", "op.x.py", -1, 4),
    ]


def test_strings_are_numbered_in_the_order_of_first_use() -> None:
    assert list(profile(NODES[:1]).string_table) == [
        b"",
        b"nn:layer",
        b"/ada/nn.py",
        b"op.x:matmul",
        b"op.x.py",
        b"graph node:",
        b"a",
        b"count",
        b"micros",
        b"microseconds",
        b"Sum of accelerator execution time and cpu execution time.",
    ]


@pytest.mark.parametrize("select", VALUES)
def test_each_counter_can_be_written_with_its_unit(select: str) -> None:
    numbers = {word: number for number, word in enumerate(VALUES, 1)}
    pprof_profile = profile([with_stack(node("a", "Add", **numbers), MAIN)], select)
    text = [string.decode() for string in pprof_profile.string_table]
    assert [(text[value.type], text[value.unit]) for value in pprof_profile.sample_type] == [
        ("count", "count"),
        (select, VALUES[select].unit),
    ]
    assert [text[number] for number in pprof_profile.comment] == [VALUES[select].comment]
    assert samples(pprof_profile) == [("a", [1, numbers[select]], [])]


@pytest.mark.parametrize(
    ("select", "message_"),
    [
        ({"micros", "bytes"}, "-output pprof has one column: select one, such as -select micros"),
        (set[str](), "-output pprof has one column: select one, such as -select micros"),
        ({"device"}, "pprof doesn't support -select=device"),
    ],
)
def test_anything_but_one_counter_is_refused(select: set[str], message_: str) -> None:
    with pytest.raises(UsageError, match=message_):
        pprof(code_view(NODES, Options()), frozenset(select))


def test_the_file_is_compressed_and_the_same_each_time() -> None:
    view = code_view(NODES, Options())
    data = pprof(view, frozenset({"bytes"}))
    assert data == pprof(view, frozenset({"bytes"}))
    assert Profile.FromString(gzip.decompress(data)) == message(view, frozenset({"bytes"}))


def test_stacks_of_a_thousand_calls_and_broken_text_are_written() -> None:
    stack = [Frame("deep\udcff.py", line, "call\udcff") for line in range(1000)]
    pprof_profile = profile([with_stack(node("a\udcff", "Add"), *stack)], max_depth=2000)
    assert len(pprof_profile.sample[0].location_id) == 999
    assert b"a\xff" in pprof_profile.string_table
    assert b"deep\xff:call\xff" in pprof_profile.string_table
