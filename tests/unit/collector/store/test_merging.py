"""A merged rollup equals the rollup of all ops."""

import random
from functools import reduce

import pyarrow as pa
import pytest
from tfprof.collector.store import aggregation
from tfprof.collector.store.merging import by_python, merge
from tfprof.collector.store.schema import NONE_ID, ROLLUP

needs_c_part = pytest.mark.skipif(aggregation.native is None, reason="built without a C compiler")
EXTREMES = (0, 1, -1, 1 << 40, (1 << 63) - 1, -(1 << 63))


def made_rollup(seed, *, values=lambda source: source.randrange(1 << 50), rows=20, keys=40):
    source = random.Random(seed)
    chosen = sorted(source.sample(range(keys), rows))
    columns = {field.name: [values(source) for _ in chosen] for field in ROLLUP if field.type == pa.int64()}
    columns["runs"] = [source.choice([0, 0, 1, 5, 1 << 40]) for _ in chosen]
    columns["first_bucket"] = [source.randrange(200) for _ in chosen]
    columns["node"] = [key // 3 for key in chosen]
    columns["device"] = [(0, 7, NONE_ID)[key % 3] for key in chosen]
    columns["canonical"] = [source.choice([NONE_ID, NONE_ID, 0, 7]) for _ in chosen]
    columns["sum_squares_ns2"] = [source.random() * 1e20 for _ in chosen]
    columns["histogram"] = [
        [source.randrange(1 << 32) for _ in range(source.choice([0, 0, 1, 9, 200]))] for _ in chosen
    ]
    return pa.table({name: columns[name] for name in ROLLUP.names}, schema=ROLLUP)


@needs_c_part
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "values",
    [lambda source: source.randrange(1, 10**12), lambda source: source.choice(EXTREMES)],
    ids=["usual", "extreme"],
)
def test_the_c_part_and_pyarrow_give_equal_results(seed, values):
    parts = [made_rollup(seed * 10 + number, values=values) for number in range(5)]
    found = merge(*parts)
    found.validate(full=True)
    assert found.equals(reduce(by_python, parts))


@needs_c_part
def test_sliced_rollups_are_read_from_their_offset():
    whole = made_rollup(1, rows=30)
    alone = [pa.Table.from_pylist(whole.slice(at, 10).to_pylist(), ROLLUP) for at in (5, 20)]
    assert merge(whole.slice(5, 10), whole.slice(20, 10)).equals(merge(*alone))
    assert merge(pa.concat_tables(alone), made_rollup(2)).equals(reduce(by_python, [*alone, made_rollup(2)]))


def test_a_build_without_the_c_part_merges_by_pyarrow(monkeypatch):
    parts = [made_rollup(seed) for seed in range(3)]
    built = merge(*parts)
    monkeypatch.setattr(aggregation, "native", None)
    assert merge(*parts).equals(built)


def test_merging_empty_rollups_changes_nothing():
    assert merge().equals(ROLLUP.empty_table())
    assert merge(ROLLUP.empty_table(), ROLLUP.empty_table()).num_rows == 0
    assert merge(ROLLUP.empty_table(), made_rollup(3)).equals(made_rollup(3))


def buffers(**changed):
    """Return the C part's arguments for a rollup, with some of them ``changed``.

    The rollup has two rows, one with a histogram of three buckets, one with an empty histogram.
    """
    parts = {"group": bytes(8), "canonical": bytes(8), "offsets": b"\0\0\0\0\3\0\0\0\3\0\0\0", "counts": bytes(12)}
    parts |= {name: bytes(16) for name in aggregation.RESULTS}
    return tuple((parts | changed).values())


@needs_c_part
def test_the_c_part_accepts_consistent_columns():
    words, canonical, ends, counts = aggregation.native.merge([buffers(), buffers()], 1)
    assert (len(words), canonical, len(ends), counts) == (8 * len(aggregation.RESULTS), bytes(4), 8, bytes(12))


@needs_c_part
@pytest.mark.parametrize(
    "wrong",
    [
        {"group": b"\0\0\0\0\1\0\0\0"},  # no such row
        {"group": bytes(4)},
        {"canonical": bytes(12)},
        {"offsets": bytes(8)},
        {"offsets": b"\0\0\0\0\4\0\0\0\3\0\0\0"},
        {"offsets": b"\xff\xff\xff\xff\0\0\0\0\3\0\0\0"},
        {"counts": bytes(8)},
        {"runs": bytes(8)},
        {"first_bucket": bytes(8) + b"\xff" * 8},
        {"more": bytes(16)},
    ],
    ids=str,
)
def test_the_c_part_refuses_inconsistent_columns(wrong):
    for lot in ([buffers(**wrong)], [buffers(), buffers(**wrong)]):
        with pytest.raises(ValueError, match="rollup"):
            aggregation.native.merge(lot, 1)


@needs_c_part
def test_the_c_part_refuses_other_arguments():
    with pytest.raises(TypeError):
        aggregation.native.merge((buffers(),), 1)
    with pytest.raises(ValueError, match="another number of columns"):
        aggregation.native.merge([None], 1)
    with pytest.raises(TypeError):
        aggregation.native.merge([(None,) * (4 + len(aggregation.RESULTS))], 1)
    with pytest.raises(ValueError, match="out of range"):
        aggregation.native.merge([], -1)
