"""The protobuf wire format, without protobuf."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfprof.formats import pb_wire

MESSAGE = b"\x08\x01" + b"\x12\x03abc" + b"\x1d1234" + b"\x2112345678" + b"\x08\x03"


def test_a_field_is_removed_and_the_rest_is_unchanged():
    assert pb_wire.without(MESSAGE, 1) == MESSAGE[2:-2]
    assert pb_wire.without(MESSAGE, 2) == MESSAGE[:2] + MESSAGE[7:]
    assert pb_wire.without(MESSAGE, 9) == MESSAGE


def test_the_last_value_of_a_field_counts():
    assert pb_wire.last(MESSAGE, 1) == 3
    assert pb_wire.last(b"", 1) == 0
    assert pb_wire.last(MESSAGE + b"\x08\x00", 1, default=7) == 0


@given(st.integers(0, 2**64 - 1))
def test_a_varint_round_trips(value):
    data = pb_wire.encoded(value)
    assert pb_wire.varint(data, 0) == (value, len(data))


@pytest.mark.parametrize("data", [b"\x12\x05abc", b"\x0b", b"\x08", b"\x80" * 11, b"\x1d12", b"\x2112"])
def test_bytes_cut_short_are_an_error(data):
    with pytest.raises(ValueError):
        list(pb_wire.fields(data))


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data):
    try:
        found = list(pb_wire.fields(data))
    except ValueError:
        return
    assert b"".join(data[start:end] for _, start, end, _ in found) == data
