"""A merged rollup equals the sums of the rows of all rollups."""

import random

import pyarrow as pa
import pytest
from tfprof.collector.store import aggregation
from tfprof.collector.store.merging import merge
from tfprof.collector.store.schema import NONE_ID, ROLLUP

EXTREMES = (0, 1, -1, 1 << 40, (1 << 63) - 1, -(1 << 63))


def random_rollup(seed, *, values=lambda rng: rng.randrange(1 << 50), rows=20, keys=40):
    rng = random.Random(seed)
    sampled_keys = sorted(rng.sample(range(keys), rows))
    columns = {name: [values(rng) for _ in sampled_keys] for name in aggregation.RESULTS}
    columns["node"] = [key // 3 for key in sampled_keys]
    columns["device"] = [(0, 7, NONE_ID)[key % 3] for key in sampled_keys]
    columns["canonical"] = [rng.choice([NONE_ID, NONE_ID, 0, 7]) for _ in sampled_keys]
    return pa.table({name: columns[name] for name in ROLLUP.names}, schema=ROLLUP)


def wrap_int64(value):
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def merge_row_by_row(parts):
    """Return the rows of the merged rollup, by the simplest code."""
    merged = {}
    for row in (row for part in parts for row in part.to_pylist()):
        zeros = dict.fromkeys(aggregation.RESULTS, 0) | {"canonical": NONE_ID}
        sums = merged.setdefault((row["node"], row["device"]), zeros)
        for name in aggregation.RESULTS:
            sums[name] = wrap_int64(sums[name] + row[name])
        if sums["canonical"] == NONE_ID:
            sums["canonical"] = row["canonical"]
    return [{"node": node, "device": device} | row for (node, device), row in sorted(merged.items())]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "values",
    [lambda rng: rng.randrange(1, 10**12), lambda rng: rng.choice(EXTREMES)],
    ids=["usual", "extreme"],
)
def test_merging_equals_adding_row_by_row(seed, values):
    parts = [random_rollup(seed * 10 + number, values=values) for number in range(5)]
    merged = merge(*parts)
    merged.validate(full=True)
    assert merged.schema == ROLLUP
    assert merged.to_pylist() == merge_row_by_row(parts)


def test_sliced_rollups_are_read_from_their_offset():
    rollup = random_rollup(1, rows=30)
    parts = [pa.Table.from_pylist(rollup.slice(at, 10).to_pylist(), ROLLUP) for at in (5, 20)]
    assert merge(rollup.slice(5, 10), rollup.slice(20, 10)).equals(merge(*parts))
    chunked = pa.concat_tables(parts)
    assert merge(chunked, random_rollup(2)).to_pylist() == merge_row_by_row([chunked, random_rollup(2)])


def test_merging_empty_rollups_changes_nothing():
    assert merge().equals(ROLLUP.empty_table())
    assert merge(ROLLUP.empty_table(), ROLLUP.empty_table()).num_rows == 0
    assert merge(ROLLUP.empty_table(), random_rollup(3)).equals(random_rollup(3))
