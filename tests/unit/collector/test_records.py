import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfprof.collector.errors import FormatError
from tfprof.collector.ingest.parsing import span_rows
from tfprof.collector.records import JSON_MAX, Record, cut_records, cut_spans, document
from tfprof.formats import layout


def record(seq, body=b"x", kind=layout.RUN_METADATA, size=None):
    size = layout.RECORD.size + len(body) if size is None else size
    return layout.RECORD.pack(size, kind, 1, seq, 5, 10, 20, 30, 40, 50) + body


def span(ordinal=1):
    return layout.SPAN.pack(100, 7, ordinal, 1, layout.BATCH, 0, 2, 3, 7, 7, 0)


def test_records_have_all_their_fields():
    first, second = cut_records(memoryview(record(3, b"abc") + record(4, b"")), 3, 4)
    assert first == Record(layout.RUN_METADATA, 1, 3, 5, 10, 20, 30, 40, 50, memoryview(b"abc"))
    assert (second.seq, bytes(second.body)) == (4, b"")


@pytest.mark.parametrize(
    ("body", "first", "last"),
    [
        (b"", 1, 1),
        (record(1)[:20], 1, 1),
        (record(1, size=55), 1, 1),
        (record(1, size=0), 1, 1),
        (record(1, size=58), 1, 1),
        (record(1, size=0xFFFFFFFF), 1, 1),
        (record(2) + record(2), 2, 2),
        (record(2) + record(1), 1, 2),
        (record(1), 1, 2),
        (record(2), 1, 2),
        (record(1) + b"\0", 1, 1),
    ],
)
def test_a_body_that_contradicts_its_head_is_a_format_error(body, first, last):
    with pytest.raises(FormatError):
        cut_records(memoryview(body), first, last)


@given(st.binary(max_size=300))
def test_random_bytes_are_records_or_a_format_error(body):
    try:
        records = cut_records(memoryview(body), 1, 1)
    except FormatError:
        return
    assert sum(len(record.body) + layout.RECORD.size for record in records) == len(body)


def test_spans_have_the_offset_between_the_clocks():
    body = struct.pack("<QQ", 1_000, 5_000) + span(1) + span(2)
    offset, spans = cut_spans(memoryview(body), 7, 8)
    assert offset == 4_000
    assert [span.ordinal for span in spans] == [1, 2]


def test_a_span_entry_with_a_count_of_0_counts_as_one_step():
    entry = layout.SPAN.pack(100, 7, 1, 0, layout.BATCH, 0, 2, 3, 7, 7, 0)
    _, spans = cut_spans(memoryview(struct.pack("<QQ", 1_000, 5_000) + entry), 1, 1)
    assert span_rows(spans, 0).column("count").to_pylist() == [1]


def test_the_real_clock_may_be_behind_the_monotonic_one():
    offset, _ = cut_spans(memoryview(struct.pack("<QQ", 5_000, 1_000) + span()), 1, 1)
    assert offset == -4_000


@pytest.mark.parametrize(("cut", "first", "last"), [(1, 1, 1), (0, 1, 2), (0, 0, 1), (0, 1, 1 << 60)])
def test_span_entries_that_do_not_fill_the_body_are_a_format_error(cut, first, last):
    body = struct.pack("<QQ", 0, 0) + span()
    with pytest.raises(FormatError):
        cut_spans(memoryview(body[: len(body) - cut]), first, last)


@pytest.mark.parametrize(
    "text", [b"", b"[1]", b"{", b"\xff", b'{"a": "\xed\xa0\x80"}', b"1" * 5_000, b"[" * 100_000, b" " * (JSON_MAX + 1)]
)
def test_anything_but_a_json_object_is_a_format_error(text):
    with pytest.raises(FormatError):
        document(memoryview(text))


@given(st.dictionaries(st.text(), st.integers()))
def test_a_json_object_is_read_unchanged(value):
    assert document(memoryview(json.dumps(value).encode())) == value
