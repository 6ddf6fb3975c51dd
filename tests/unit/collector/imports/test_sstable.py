"""Reading of sorted string tables, the format of checkpoint indexes."""

import random
from collections.abc import Callable

import pytest
from tfprof.collector.imports.checksum import crc32c, masked_crc
from tfprof.collector.imports.sstable import DamagedTableError, decompress, entries

PAIRS = [(f"layer_{number // 10}/v{number}".encode(), bytes([number % 256]) * (number % 7)) for number in range(200)]


def varint(number: int) -> bytes:
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])


def block(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """Return a block of ``pairs``.

    Each key, except every 16th, shares a prefix with the key before it.
    """
    data, last_key, restarts = b"", b"", []
    for position, (key, value) in enumerate(pairs):
        shared = 0
        if position % 16:
            shared = next(
                (n for n, (a, b) in enumerate(zip(key, last_key, strict=False)) if a != b), min(len(key), len(last_key))
            )
        else:
            restarts.append(len(data))
        data += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last_key = key
    return data + b"".join(number.to_bytes(4, "little") for number in [*(restarts or [0]), len(restarts) or 1])


def literal(data: bytes) -> bytes:
    """Return ``data`` in the format of Snappy, as literals only."""
    pieces = [data[start : start + 50] for start in range(0, len(data), 50)]
    return varint(len(data)) + b"".join(bytes([(len(piece) - 1) << 2]) + piece for piece in pieces)


def table(
    pairs: list[tuple[bytes, bytes]],
    block_pairs: int = 40,
    compression: int = 0,
    change: Callable[[bytes], bytes] = bytes,
) -> bytes:
    """Return a table with ``block_pairs`` pairs per block.

    ``change`` alters the content of each block.
    """
    data, handles = b"", []

    def add(content: bytes) -> bytes:
        nonlocal data
        content = change(literal(content) if compression == 1 else content)
        handle = varint(len(data)) + varint(len(content))
        content += bytes([compression])
        data += content + masked_crc(crc32c(content)).to_bytes(4, "little")
        return handle

    for start in range(0, len(pairs), block_pairs):
        part = pairs[start : start + block_pairs]
        handles.append((part[-1][0], add(block(part))))
    footer = add(block([])) + add(block(handles))
    return data + footer.ljust(40, b"\0") + (0xDB4775248B80FB57).to_bytes(8, "little")


@pytest.mark.parametrize("block_pairs", [1, 7, 40, 1000])
@pytest.mark.parametrize("compression", [0, 1])
def test_keys_and_values_are_read_in_order(block_pairs: int, compression: int) -> None:
    assert list(entries(table(PAIRS, block_pairs, compression))) == PAIRS


@pytest.mark.parametrize(
    ("packed", "plain"),
    [
        (b"\x00", b""),
        (b"\x05\x10hello", b"hello"),
        (b"\x0a\x04ab\x11\x02", b"ab" * 5),  # a copy that overlaps its own output
        (b"\x08\x0cabcd\x0e\x04\x00", b"abcdabcd"),
        (b"\x08\x0cabcd\x0f\x04\x00\x00\x00", b"abcdabcd"),
        (b"\x46\xf0\x45" + b"x" * 70, b"x" * 70),
        (b"\x80\x02\xf4\xff\x00" + b"y" * 256, b"y" * 256),
    ],
)
def test_snappy_blocks_are_decompressed(packed: bytes, plain: bytes) -> None:
    assert decompress(packed) == plain


@pytest.mark.parametrize(
    "packed", [b"\x05\x10hell", b"\x08\x0cabcd\x01\x09", b"\x08\x0cabcd\x01\x00", b"\x05", b"\xff" * 5 + b"\x01"]
)
def test_invalid_snappy_blocks_are_refused(packed: bytes) -> None:
    with pytest.raises(DamagedTableError):
        decompress(packed)


@pytest.mark.parametrize("data", [b"", b"x" * 100, table(PAIRS)[:-1], table(PAIRS)[100:], table(PAIRS, compression=3)])
def test_other_data_is_refused(data: bytes) -> None:
    with pytest.raises(DamagedTableError):
        list(entries(data))


@pytest.mark.parametrize("compression", [0, 1])
def test_each_changed_bit_is_detected_or_has_no_effect(compression: int) -> None:
    rng, whole = random.Random(4), table(PAIRS, 40, compression)
    footer = len(whole) - 48
    for _ in range(300):
        data = bytearray(whole)
        data[rng.randrange(footer)] ^= 1 << rng.randrange(8)
        try:
            pairs = list(entries(bytes(data)))
        except DamagedTableError as error:
            assert "checksum" in str(error)  # noqa: PT017  # not all changes are errors
        else:
            assert pairs == PAIRS  # the change is in the metaindex block, which is not read


@pytest.mark.parametrize("compression", [0, 1])
def test_each_changed_bit_of_a_block_is_detected(compression: int) -> None:
    rng, whole = random.Random(4), table(PAIRS, 40, compression)
    empty_block = literal(block([])) if compression == 1 else block([])
    end = whole.index(empty_block + bytes([compression]))  # the end of the blocks with pairs
    for _ in range(300):
        data = bytearray(whole)
        data[rng.randrange(end)] ^= 1 << rng.randrange(8)
        with pytest.raises(DamagedTableError, match="the checksum of a block is wrong"):
            list(entries(bytes(data)))


def test_damaged_tables_with_valid_checksums_are_refused_or_read_to_the_end() -> None:
    rng, refusals = random.Random(4), 0

    def change(content: bytes) -> bytes:
        data = bytearray(content)
        for _ in range(rng.choice((0, 1, 3))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)

    for _ in range(300):
        try:
            list(entries(table(PAIRS, 40, rng.randrange(2), change)))
        except DamagedTableError:
            refusals += 1
    assert refusals > 50
