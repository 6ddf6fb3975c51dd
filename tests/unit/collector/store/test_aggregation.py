"""The C part aggregates ops like pyarrow.

Tests collector/store/devices.py.
"""

import random

import pyarrow as pa
import pytest
from fakes import random_rows
from tfprof.collector.store import aggregation
from tfprof.collector.store.devices import Devices
from tfprof.collector.store.rollup import canonical_after, rollup_of, sorted_by_node
from tfprof.collector.store.schema import NONE_ID, ROLLUP

needs_c_part = pytest.mark.skipif(aggregation.native is None, reason="built without a C compiler")
EXTREMES = (0, 1, -1, 999, -1000, 1 << 40, (1 << 63) - 1, -(1 << 63))
TRACES = random_rows.traces(0, 4)
DEVICES = Devices(random_rows.device_names())
NO_CANONICAL = pa.array([], pa.uint32())


def random_ops(seed, *, rows=200, values=lambda rng: rng.randrange(1, 10**12)):
    """Return rows of some nodes and traces, in order of arrival."""
    rng = random.Random(seed)
    columns = {name: [values(rng) for _ in range(rows)] for name in aggregation.INPUTS}
    columns |= {
        "node": [rng.randrange(9) for _ in range(rows)],
        "device": [rng.randrange(5) for _ in range(rows)],
    }
    columns["trace"] = sorted(rng.randrange(5) for _ in range(rows))
    return random_rows.table(
        "ops", [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    )


def roll_up(ops, canonical_before=NO_CANONICAL):
    """Return the canonical devices after ``ops``, and the rollup of ``ops``.

    Trace 4 is not in TRACES, so the start of its times (`base_ns`) is unknown.
    """
    canonical = canonical_after(ops, DEVICES, canonical_before)
    return canonical, rollup_of(sorted_by_node(ops, DEVICES), TRACES, DEVICES, canonical)


@needs_c_part
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "values",
    [lambda rng: rng.randrange(1, 10**12), lambda rng: rng.choice(EXTREMES)],
    ids=["usual", "extreme"],
)
def test_the_c_part_and_pyarrow_give_equal_results(seed, values, monkeypatch):
    ops, canonical_before = random_ops(seed, values=values), pa.array([NONE_ID, 1, 3, NONE_ID][: seed % 5], pa.uint32())
    canonical, c_rollup = roll_up(ops, canonical_before)
    monkeypatch.setattr(aggregation, "native", None)
    assert roll_up(ops, canonical_before) == (canonical, c_rollup)
    c_rollup.validate(full=True)
    assert c_rollup.schema == ROLLUP
    assert c_rollup.num_rows > 9


@needs_c_part
def test_sliced_columns_are_read_from_their_offset():
    ops = random_ops(1)
    copied_ops = random_rows.table("ops", ops.slice(50, 90).to_pylist())
    assert roll_up(ops.slice(50, 90)) == roll_up(copied_ops)


@pytest.mark.parametrize("native", [aggregation.native, None], ids=["built", "python"])
def test_no_rows_have_no_sums(native, monkeypatch):
    monkeypatch.setattr(aggregation, "native", native)
    canonical, rollup = roll_up(random_ops(1, rows=0), pa.array([2], pa.uint32()))
    assert (canonical.to_pylist(), rollup) == ([2], ROLLUP.empty_table())


TWO_UINT32, TWO_INT64 = bytes(8), bytes(16)


@needs_c_part
@pytest.mark.parametrize(
    ("device", "trace", "inputs", "canonical"),
    [
        (TWO_UINT32, TWO_UINT32, (TWO_INT64,) * 11, TWO_UINT32),  # a column is missing
        (TWO_UINT32, TWO_UINT32, (TWO_INT64,) * 11 + (TWO_UINT32,), TWO_UINT32),  # a column is too short
        (TWO_INT64, TWO_UINT32, (TWO_INT64,) * 12, TWO_UINT32),
        (TWO_UINT32, TWO_INT64, (TWO_INT64,) * 12, TWO_UINT32),
        (TWO_UINT32, TWO_UINT32, (TWO_INT64,) * 12, b""),  # no canonical device for the node
    ],
)
def test_the_c_part_refuses_inconsistent_columns(device, trace, inputs, canonical):
    with pytest.raises(ValueError, match="the columns"):
        aggregation.native.rollup(TWO_UINT32, device, trace, inputs, canonical, b"")
    with pytest.raises(ValueError, match="the columns"):
        aggregation.native.canonical(TWO_UINT32, TWO_INT64, canonical, b"")


@needs_c_part
def test_the_c_part_accepts_consistent_columns():
    node, device, canonical, words = aggregation.native.rollup(
        TWO_UINT32, TWO_UINT32, TWO_UINT32, (TWO_INT64,) * 12, TWO_UINT32, b"\1"
    )
    assert (node, device, canonical) == (TWO_UINT32, bytes(4) + b"\xff" * 4, b"\xff" * 4 + bytes(4))
    assert len(words) == 2 * 8 * len(aggregation.RESULTS)
    assert aggregation.native.canonical(TWO_UINT32, TWO_UINT32, b"", b"\1") == bytes(4)
