"""Checksums of checkpoints: known values, and equal results of both implementations."""

import random
from collections.abc import Callable

import pytest
from tfprof.collector.imports import checksum
from tfprof.collector.imports.checksum import bytewise_crc32c, crc32c, masked_crc

#: From RFC 3720, appendix B.4.
KNOWN = [
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
]


@pytest.mark.parametrize("function", [crc32c, bytewise_crc32c])
def test_checksums_of_known_data_are_right(function: Callable[[bytes], int]) -> None:
    assert [function(data) for data, _ in KNOWN] == [crc for _, crc in KNOWN]


@pytest.mark.skipif(checksum.native is None, reason="built without a C compiler")
def test_both_implementations_agree_on_every_length_and_alignment() -> None:
    data = memoryview(random.Random(1).randbytes(300))
    for size in (*range(40), 255, 280):
        for offset in range(9):
            part = data[offset : offset + size]
            assert crc32c(part) == bytewise_crc32c(part)
            assert crc32c(part[size // 3 :], crc32c(part[: size // 3])) == crc32c(part)


def test_the_mask_is_that_of_leveldb() -> None:
    crc = crc32c(b"foo")
    assert masked_crc(crc) == ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32 != crc
