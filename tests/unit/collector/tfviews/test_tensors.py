"""Values of variables, as text and as messages."""

import struct

import pytest
from tfprof.collector.export.messages import tensor_message
from tfprof.collector.tfviews.tensors import DOUBLE, FLOAT, INT32, INT64, STRING, TEXT_MAX, Tensor


def floats(*values: float, shape: tuple[int, ...] | None = None) -> Tensor:
    return Tensor(FLOAT, (len(values),) if shape is None else shape, struct.pack(f"<{len(values)}f", *values))


STRINGS = Tensor(STRING, (2,), b"\x01\x03CRC4" + "xö!".encode())


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (floats(1.5, shape=()), "[1.50 ],\n"),
        (floats(1.5, -2, 0.005), "[1.50 -2.00 0.01 ],\n"),
        (floats(1, 2, 3, 4, shape=(2, 2)), "[[1.00 2.00 ],\n[3.00 4.00 ],\n],\n"),
        (floats(1, 2, shape=(2, 1, 1)), "[[[1.00 ],\n],\n[[2.00 ],\n],\n],\n"),
        (floats(shape=(0, 3)), "[],\n"),
        (floats(shape=(2, 0)), "[[],\n[],\n],\n"),
        (floats(123456789, float("inf")), "[123457000.00 inf ],\n"),
        (Tensor(INT32, (2,), struct.pack("<2i", -1, 1 << 30)), "[-1 1073741824 ],\n"),
        (STRINGS, "['x' 'ö!' ],\n"),
    ],
)
def test_a_value_is_written_in_nested_brackets(tensor: Tensor, text: str) -> None:
    assert tensor.text() == text


def test_a_long_value_is_truncated_with_a_note() -> None:
    text = floats(*range(4000), shape=(40, 100)).text()
    assert text.startswith("[[0.00 1.00 ")
    assert text.endswith("],\n...omitted from display\n\n")
    assert len(text) == TEXT_MAX + len("],\n...omitted from display\n\n")


@pytest.mark.parametrize(("count", "is_truncated"), [(1999, False), (2000, True)])
def test_a_value_is_truncated_at_the_tf_profilers_length(count: int, is_truncated: bool) -> None:
    assert ("omitted" in floats(*[1.0] * count).text()) == is_truncated


def test_messages_contain_all_values_by_type() -> None:
    assert list(tensor_message(floats(0.1, 123456789)).value_double) == [0.1, 123457000.0]
    assert tensor_message(floats(0.1)).dtype == FLOAT
    doubles = tensor_message(Tensor(DOUBLE, (1,), struct.pack("<d", 1 / 3)))
    assert (doubles.dtype, list(doubles.value_double)) == (DOUBLE, [0.333333])
    integers = tensor_message(Tensor(INT64, (), struct.pack("<q", -(1 << 60))))
    assert (integers.dtype, list(integers.value_int64)) == (INT64, [-(1 << 60)])
    assert list(tensor_message(STRINGS).value_str) == ["x", "ö!"]
