"""The protobuf wire format, without protobuf."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfprof.formats import pb_wire

MESSAGE = b"\x08\x01" + b"\x12\x03abc" + b"\x1d1234" + b"\x2112345678" + b"\x08\x03"


def test_a_field_is_removed_and_the_rest_is_unchanged():
    assert pb_wire.without_field(MESSAGE, 1) == MESSAGE[2:-2]
    assert pb_wire.without_field(MESSAGE, 2) == MESSAGE[:2] + MESSAGE[7:]
    assert pb_wire.without_field(MESSAGE, 9) == MESSAGE


def test_the_last_value_of_a_field_counts():
    assert pb_wire.last_varint(MESSAGE, 1) == 3
    assert pb_wire.last_varint(b"", 1) == 0
    assert pb_wire.last_varint(MESSAGE + b"\x08\x00", 1, default=7) == 0
    assert pb_wire.last_varint(MESSAGE + b"\x0a\x01\xff", 1) == 3  # a field of another wire type is skipped


def test_only_length_delimited_fields_have_contents():
    message = MESSAGE + b"\x12\x00" + b"\x10\x05" + b"\x12\x02de"
    assert list(pb_wire.field_contents(message, 2)) == [b"abc", b"", b"de"]
    assert list(pb_wire.field_contents(MESSAGE, 1)) == []


def test_field_contents_of_a_view_are_views_of_the_same_memory():
    data = bytearray(MESSAGE)
    (content,) = pb_wire.field_contents(memoryview(data), 2)
    data[4:7] = b"xyz"
    assert bytes(content) == b"xyz"
    assert pb_wire.without_field(memoryview(data), 2) == MESSAGE[:2] + MESSAGE[7:]


@given(st.integers(0, 2**64 - 1))
def test_a_varint_round_trips(value):
    data = pb_wire.encode_varint(value)
    assert pb_wire.varint(data, 0) == (value, len(data))


@pytest.mark.parametrize("data", [b"\x12\x05abc", b"\x08", b"\x80" * 11, b"\x1d12", b"\x2112"])
def test_bytes_cut_short_are_an_error(data):
    with pytest.raises(pb_wire.InvalidMessageError):
        list(pb_wire.fields(data))


@pytest.mark.parametrize("data", [b"\x0b", b"\x0e", b"\x00\x01", b"\x02\x00"])
def test_a_field_of_an_unknown_type_or_without_a_number_is_an_error(data):
    with pytest.raises(pb_wire.InvalidMessageError):
        list(pb_wire.fields(data))


def test_a_varint_has_at_most_ten_bytes():
    assert pb_wire.varint(b"\xff" * 9 + b"\x01", 0) == ((1 << 64) - 1, 10)
    with pytest.raises(pb_wire.InvalidMessageError):
        pb_wire.varint(b"\x80" * 10 + b"\x01", 0)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data):
    try:
        fields = list(pb_wire.fields(data))
    except ValueError:
        return
    assert b"".join(data[start:end] for _, start, _, end in fields) == data
    assert all(start < content <= end for _, start, content, end in fields)
