"""Fields of protobuf messages are those of the library."""

import random

import pytest
from google.protobuf.internal import encoder
from tfprof.collector.export.wire import varint

EDGES = [bound + near for bits in range(65) for bound in (1 << bits, -(1 << bits)) for near in (-1, 0, 1)]
RANDOM = [random.Random(bits).getrandbits(bits) for bits in range(1, 65) for _ in range(3)]


@pytest.mark.parametrize("values", [EDGES, RANDOM])
def test_a_varint_is_that_of_the_library(values: list[int]) -> None:
    for value in values:
        if -(1 << 63) <= value < 1 << 64:
            pieces: list[bytes] = []
            encoder._EncodeVarint(pieces.append, value % (1 << 64), True)
            assert varint(value) == b"".join(pieces)
