"""Parsing of node names, timeline labels and output signatures."""

import pytest
from fakes.graphs import signature
from tfprof.collector.flops.definitions import InputSource
from tfprof.collector.flops.executed import LabelInfo, fed_placeholder, parsed_label, recorded_shapes, shapes_in_order
from tfprof.collector.store.output_signatures import OpOutput, encode
from tfprof.collector.tfviews.places import original_name


@pytest.mark.parametrize(
    ("label", "info"),
    [
        (
            "x = MatMul(a, b:1, ^c)",
            LabelInfo("MatMul", (InputSource("a", 0), InputSource("b", 1), InputSource("c", 0, is_control=True))),
        ),
        (
            "[cpu 26.3MB 26.3MB] s/x = _MklNativeFusedConv2D(a)",
            LabelInfo("_MklNativeFusedConv2D", (InputSource("a", 0),)),
        ),
        ("x = NoOp()", LabelInfo("NoOp", ())),
        ("_FusedConv2D", LabelInfo("_FusedConv2D", None)),
        ("id=4,device=/job:localhost/replica:0/task:0/device:CPU:0,async=false", None),
        ("void cudnn::kernel(int, float*)", None),
        ("", None),
    ],
)
def test_labels_are_parsed(label: str, info: LabelInfo | None) -> None:
    assert parsed_label(label) == info


def test_names_of_fed_placeholders_are_parsed() -> None:
    assert fed_placeholder("_arg_model/images_0_12") == InputSource("model/images", 0)
    assert fed_placeholder("_arg_split_2_0") == InputSource("split", 2)
    assert fed_placeholder("images") is None
    assert fed_placeholder("_arg_images") is None


def test_names_of_nodes_in_inlined_functions_are_parsed() -> None:
    assert original_name("net/while/body/_12/net/while/MatMul") == "net/while/MatMul"
    assert original_name("cond/then/_0/while/body/_3/while/add_1") == "while/add_1"
    assert original_name("net/MatMul_1") == "net/MatMul_1"


def test_shapes_by_slot() -> None:
    assert recorded_shapes(signature((2, 3), (), None)) == ((2, 3), (), None)
    assert recorded_shapes(b"") == ()
    outputs = [OpOutput(1, 1, b"", True, True), OpOutput(0, 1, b"", True, True)]
    assert recorded_shapes(encode(outputs)) == ((),), "a slot is ignored if a lower slot comes after it"
    twice = [OpOutput(0, 1, b"", True, True), OpOutput(0, 1, None, True, True)]
    assert recorded_shapes(encode(twice)) == (None,), "the last output counts"


def test_shapes_by_position_as_in_tensorflows_python() -> None:
    assert shapes_in_order(signature((2, 3), None)) == [(2, 3), ()], "a missing shape counts as a scalar"


def test_invalid_signatures_have_no_shapes() -> None:
    assert recorded_shapes(b"\x00\x01\x02\x7f") == ()
    assert shapes_in_order(b"\x80") == []
    broken = encode([OpOutput(0, 1, b"\xff\xff", True, True)])
    assert recorded_shapes(broken) == (None,)
