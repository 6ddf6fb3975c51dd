"""A merged rollup equals the rollup of all ops."""

import random

import pyarrow as pa
import pytest
from tfprof.collector.store import aggregation
from tfprof.collector.store.merging import merge
from tfprof.collector.store.schema import NONE_ID, ROLLUP

EXTREMES = (0, 1, -1, 1 << 40, (1 << 63) - 1, -(1 << 63))


def made_rollup(seed, *, values=lambda source: source.randrange(1 << 50), rows=20, keys=40):
    source = random.Random(seed)
    chosen = sorted(source.sample(range(keys), rows))
    columns = {name: [values(source) for _ in chosen] for name in aggregation.RESULTS}
    columns["node"] = [key // 3 for key in chosen]
    columns["device"] = [(0, 7, NONE_ID)[key % 3] for key in chosen]
    columns["canonical"] = [source.choice([NONE_ID, NONE_ID, 0, 7]) for _ in chosen]
    return pa.table({name: columns[name] for name in ROLLUP.names}, schema=ROLLUP)


def wrapped(value):
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def plainly_merged(parts):
    """Return the rows of the merged rollup, by the simplest code."""
    found = {}
    for row in (row for part in parts for row in part.to_pylist()):
        fresh = dict.fromkeys(aggregation.RESULTS, 0) | {"canonical": NONE_ID}
        into = found.setdefault((row["node"], row["device"]), fresh)
        for name in aggregation.RESULTS:
            into[name] = wrapped(into[name] + row[name])
        if into["canonical"] == NONE_ID:
            into["canonical"] = row["canonical"]
    return [{"node": node, "device": device} | row for (node, device), row in sorted(found.items())]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "values",
    [lambda source: source.randrange(1, 10**12), lambda source: source.choice(EXTREMES)],
    ids=["usual", "extreme"],
)
def test_merging_equals_adding_row_by_row(seed, values):
    parts = [made_rollup(seed * 10 + number, values=values) for number in range(5)]
    found = merge(*parts)
    found.validate(full=True)
    assert found.schema == ROLLUP
    assert found.to_pylist() == plainly_merged(parts)


def test_sliced_rollups_are_read_from_their_offset():
    whole = made_rollup(1, rows=30)
    alone = [pa.Table.from_pylist(whole.slice(at, 10).to_pylist(), ROLLUP) for at in (5, 20)]
    assert merge(whole.slice(5, 10), whole.slice(20, 10)).equals(merge(*alone))
    chunked = pa.concat_tables(alone)
    assert merge(chunked, made_rollup(2)).to_pylist() == plainly_merged([chunked, made_rollup(2)])


def test_merging_empty_rollups_changes_nothing():
    assert merge().equals(ROLLUP.empty_table())
    assert merge(ROLLUP.empty_table(), ROLLUP.empty_table()).num_rows == 0
    assert merge(ROLLUP.empty_table(), made_rollup(3)).equals(made_rollup(3))
