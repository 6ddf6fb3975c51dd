import random

import pyarrow as pa
import pytest
from tfprof.collector.store import sums
from tfprof.collector.store.columns import flat
from tfprof.collector.store.schema import ROLLUP

needs_c_part = pytest.mark.skipif(sums.native is None, reason="built without a C compiler")
EXTREMES = (0, 1, -1, 999, -1000, 1 << 40, (1 << 63) - 1, -(1 << 63))


def columns(rows, *, seed, values):
    source = random.Random(seed)
    made = {name: pa.array([values(source) for _ in range(rows)], pa.int64()) for name in ("base", *sums.INPUTS)}
    return made | {"trace": pa.array(sorted(source.randrange(5) for _ in range(rows)), pa.uint32())}


def begins(rows, *, seed):
    source = random.Random(seed)
    return pa.array(sorted({0, *(source.randrange(rows) for _ in range(rows // 4))}), pa.uint64())


@needs_c_part
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "values",
    [lambda source: source.randrange(1, 10**12), lambda source: source.choice(EXTREMES)],
    ids=["usual", "extreme"],
)
def test_the_c_part_and_pyarrow_say_the_same(seed, values):
    of_rows, of_runs = columns(200, seed=seed, values=values), begins(200, seed=seed)
    table = pa.table(of_rows)
    by_c = sums.by_run(table, flat(table["base"]), of_runs)
    by_python = sums.by_python(of_rows, of_runs)
    assert by_c.keys() == by_python.keys() == {*sums.RESULTS, "histogram"}
    for name, column in by_c.items():
        assert column.type == ROLLUP.field(name).type
        assert column.equals(by_python[name].cast(column.type)), name


@pytest.mark.parametrize("seed", range(4))
def test_a_build_without_the_c_part_sums_by_pyarrow(seed, monkeypatch):
    table = pa.table(columns(50, seed=seed, values=lambda source: source.randrange(1, 10**9)))
    built = sums.by_run(table, flat(table["base"]), begins(50, seed=seed))
    monkeypatch.setattr(sums, "native", None)
    assert sums.by_run(table, flat(table["base"]), begins(50, seed=seed)) == built


@needs_c_part
def test_columns_that_begin_within_their_memory_are_read_from_there():
    table = pa.table(columns(40, seed=1, values=lambda source: source.randrange(1, 10**9)))
    part, alone = (
        table.slice(10, 20),
        pa.table({name: pa.array(table[name].to_pylist()[10:30], table[name].type) for name in table.column_names}),
    )
    runs = pa.array([0, 7], pa.uint64())
    assert sums.by_run(part, flat(part["base"]), runs) == sums.by_run(alone, flat(alone["base"]), runs)


def test_no_rows_have_no_sums():
    table = pa.table({"trace": pa.array([], pa.uint32()), **{name: pa.array([], pa.int64()) for name in sums.INPUTS}})
    result = sums.by_run(table, pa.array([], pa.int64()), pa.array([], pa.uint64()))
    assert {name: len(column) for name, column in result.items()} == dict.fromkeys([*sums.RESULTS, "histogram"], 0)


@needs_c_part
@pytest.mark.parametrize(
    ("trace", "runs", "inputs"),
    [
        (b"\0" * 8, b"\0" * 8, (b"\0" * 16,) * 12),  # a column is missing
        (b"\0" * 8, b"\0" * 8, (b"\0" * 16,) * 12 + (b"\0" * 8,)),  # a column is too short
        (b"\0" * 8, b"\2" + b"\0" * 7, (b"\0" * 16,) * 13),  # rows before the first run
        (b"\0" * 8, b"\0" * 16, (b"\0" * 16,) * 13),  # a run without rows
        (b"\0" * 8, b"\0" * 8 + b"\2" + b"\0" * 7, (b"\0" * 16,) * 13),  # a run behind the end
        (b"\0" * 8, b"", (b"\0" * 16,) * 13),  # rows of no run
    ],
)
def test_the_c_part_refuses_what_does_not_fit_together(trace, runs, inputs):
    with pytest.raises(ValueError, match="not those of one table"):
        sums.native.by_run(trace, runs, inputs)
