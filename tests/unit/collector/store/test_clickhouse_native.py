"""The format Native: what is written is read again, and what is not of the format is one error."""

import random

import pyarrow as pa
import pytest
from tfprof.collector.store.clickhouse_native import decode, encode

#: Two rows of `SELECT job, tags, f, opened, u` as ClickHouse 18.16 wrote them.
ANSWER = (
    b"\x05\x02\x03job\x0eFixedString(4)abcdABCD"
    b"\x04tags\x0dArray(String)\x02" + b"\0" * 7 + b"\x02" + b"\0" * 7 + b"\x01a\x01b"
    b"\x01f\x07Float64\0\0\0\0\0\0\xf8\x3f\0\0\0\0\0\0\0\0"
    b"\x06opened\x08DateTime\5\0\0\0\6\0\0\0\x01u\x05UInt8\0\1"
)


def test_an_answer_is_a_table() -> None:
    rows = decode(ANSWER)
    assert rows.to_pydict() == {
        "job": [b"abcd", b"ABCD"],
        "tags": [[b"a", b"b"], []],
        "f": [1.5, 0.0],
        "opened": [5, 6],
        "u": [0, 1],
    }
    assert decode(ANSWER * 3).num_rows == 6
    assert decode(b"").num_columns == 0


def test_what_is_written_is_read() -> None:
    rows = pa.table(
        {
            "a": pa.array([0, 2**64 - 1, 7], pa.uint64()),
            "b": pa.array([True, False, True]),
            "c": pa.array(["", "é\0\n", "x" * 300]),
            "d": pa.array([[], [-(2**63)], [1, 2]], pa.list_(pa.int64())),
            "e": pa.array([[], ["a", ""], ["b"]], pa.list_(pa.utf8())),
            "f": pa.array([1.5, float("inf"), -0.0]),
        }
    )
    kinds = dict(zip("abcdef", ("UInt64", "UInt8", "String", "Array(Int64)", "Array(String)", "Float64"), strict=True))
    for part in (rows, rows.slice(1), rows.slice(1, 1), pa.concat_tables([rows, rows.slice(2)])):
        assert decode(encode(part, kinds)).cast(part.schema).equals(part.combine_chunks())


def test_a_cut_answer_is_an_error_at_every_byte() -> None:
    for size in range(1, len(ANSWER)):
        with pytest.raises(ValueError, match=r"."):
            decode(ANSWER[:size])


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x05",  # no columns, five rows
        b"\x01\xff\xff\xff\xff\xff\xff\xff\x7f\x01a\x05UInt8\0",
        b"\x01\xff\xff\xff\xff\xff\xff\xff\x7f\x01a\x06String",
        b"\x01\x01\x01a\x06String\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x01\x01\x01a\x0dArray(String)\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x01\x02\x01a\x0cArray(UInt8)\x02" + b"\0" * 7 + b"\x01" + b"\0" * 7 + b"ab",  # ends that descend
        b"\x01\x01\x01a\x0eFixedString(0)",
        b"\x02\x01\x01a\x05UInt8\0\x01a\x05UInt8\0",
        b"\x01\x01\x01a\x05UInt8\0\x01\x01\x01b\x05UInt8\0",  # blocks of other columns
        b"\x01\x01\x01\xff\x05UInt8\0",
    ],
)
def test_what_is_not_of_the_format_is_an_error(data: bytes) -> None:
    with pytest.raises((ValueError, pa.ArrowException)):
        decode(data)


def test_bytes_at_random_do_no_harm() -> None:
    rng = random.Random(1)
    for _ in range(3000):
        data = bytearray(ANSWER)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            decode(bytes(data)).validate(full=True)
        except (ValueError, pa.ArrowException):
            continue
