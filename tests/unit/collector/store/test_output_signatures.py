"""Output signatures: equal outputs have equal bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfprof.collector.errors import FormatError
from tfprof.collector.store.output_signatures import OpOutput, decode, encode

SCALAR = OpOutput(0, 1, b"", described=True, allocated=True)
OUTPUTS = st.builds(
    OpOutput,
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.integers(0, (1 << 32) - 1),
    st.none() | st.binary(max_size=300),
    st.booleans(),
    st.booleans(),
)


def test_the_bytes_are_the_documented_ones():
    unknown_output = OpOutput(-1, 300, None, described=True, allocated=False)
    shape = b"\x12\x02\x08\x05"
    assert encode([SCALAR]) == bytes([0, 1, 7, 0])
    assert encode([unknown_output]) == b"\xff\xff\xff\xff\x0f" + b"\xac\x02" + b"\x01"
    assert encode([SCALAR._replace(slot=2, shape=shape)]) == bytes([2, 1, 7, 4]) + shape
    assert encode([]) == b""


@given(st.lists(OUTPUTS, max_size=5))
def test_outputs_are_read_back_as_they_were(outputs):
    assert decode(encode(outputs)) == outputs


@pytest.mark.parametrize("signature", [b"\0", b"\0\1", b"\0\x80", b"\0\1\7", b"\0\1\7\2x", encode([SCALAR]) + b"\0"])
def test_a_truncated_signature_is_refused(signature):
    with pytest.raises(FormatError, match="truncated"):
        decode(signature)
