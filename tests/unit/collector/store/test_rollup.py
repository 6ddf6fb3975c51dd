"""Rollups equal the sums of rows, and canonical devices never change.

Tests collector/store/columns.py, collector/store/node_keys.py.
"""

import pyarrow as pa
import pytest
from fakes import random_rows
from fakes.random_rows import CPU, GPU, HOST, STREAM, op
from fakes.rollups import rollup
from tfprof.collector.store.merging import merge
from tfprof.collector.store.rollup import canonical_of
from tfprof.collector.store.schema import NONE_ID


def compute_rollup(rows, traces, devices=random_rows.DEVICES, canonical=random_rows.NO_CANONICAL):
    return rollup(random_rows.table("ops", rows), traces, random_rows.device_names(devices), canonical)


def assert_rows(table, rows):
    assert table.to_pylist() == rows


def base_by_trace(traces):
    return dict(zip(traces["trace"].to_pylist(), traces["base_ns"].to_pylist(), strict=True))


@pytest.mark.parametrize("seed", range(12))
def test_a_rollup_equals_counting_row_by_row(seed):
    traces = random_rows.traces(7, 20)
    rows = random_rows.random_ops(7, 20, nodes=9, seed=seed)
    table, _ = compute_rollup(rows, traces)
    assert_rows(table, random_rows.plain_rollup(rows, base_by_trace(traces)))


@pytest.mark.parametrize("seed", range(6))
def test_merged_generations_equal_the_rollup_of_all_rows(seed):
    traces = random_rows.traces(0, 30)
    parts = [random_rows.random_ops(first, 10, nodes=12, seed=seed * 10 + first) for first in (0, 10, 20)]
    total, canonical = compute_rollup(parts[0], traces)
    for part in parts[1:]:
        table, canonical = compute_rollup(part, traces, canonical=canonical)
        total = merge(total, table)
    assert_rows(total, random_rows.plain_rollup([row for part in parts for row in part], base_by_trace(traces)))
    assert canonical_of(total).equals(canonical)


def test_the_first_cpu_or_gpu_in_order_of_arrival_is_canonical():
    _, canonical = compute_rollup(
        [op(0, 3, GPU), op(0, 3, CPU), op(0, 1, HOST), op(0, 0, CPU)], random_rows.traces(0, 1)
    )
    assert canonical.to_pylist() == [CPU, NONE_ID, NONE_ID, GPU]


def test_a_canonical_device_never_changes():
    _, canonical_before = compute_rollup([op(0, 0, CPU)], random_rows.traces(0, 1))
    table, canonical_after = compute_rollup([op(1, 0, GPU)], random_rows.traces(1, 1), canonical=canonical_before)
    assert canonical_after.to_pylist() == [CPU]
    # Executions on a second device do not count, so the node has no row with the device NONE_ID.
    assert [row["device"] for row in table.to_pylist()] == [GPU]


def test_streams_and_hosts_make_an_entry_without_a_canonical_device():
    table, _ = compute_rollup([op(0, 0, STREAM), op(1, 0, HOST), op(1, 0, STREAM)], random_rows.traces(0, 2))
    node = table.to_pylist()[-1]
    assert (node["device"], node["canonical"], node["traces"]) == (NONE_ID, NONE_ID, 2)


def test_a_canonical_device_found_later_is_in_the_merged_row():
    older_rollup, canonical = compute_rollup([op(0, 0, STREAM)], random_rows.traces(0, 1))
    newer_rollup, _ = compute_rollup([op(1, 0, GPU)], random_rows.traces(1, 1), canonical=canonical)
    assert merge(older_rollup, newer_rollup).to_pylist()[-1]["canonical"] == GPU


def test_devices_are_compared_in_lower_case():
    devices = (b"/x/device:cpu:0", b"/x/device:CPU:0")
    rows = [op(0, 0, 1), op(0, 0, 0), op(1, 0, 1)]
    table, canonical = compute_rollup(rows, random_rows.traces(0, 2), devices)
    assert canonical.to_pylist() == [0]
    assert_rows(table, random_rows.plain_rollup(rows, {0: random_rows.BASE_NS, 1: random_rows.BASE_NS + 1}, devices))


@pytest.mark.parametrize(
    ("name", "is_canonical"),
    [
        (b"/job:localhost/replica:0/task:0/device:GPU:11", True),
        (b"/job:localhost/replica:0/task:0/cpu:0", True),
        (b"/gpu:1", True),
        (b"/host:CPU", False),
        (b"/device:GPU:0/stream:all", False),
        (b"/job:a/device:XLA_GPU:0", False),
        (b"gpu:0", False),
        (b"/device:CPU:", False),
    ],
)
def test_only_plain_cpus_and_gpus_can_be_canonical(name, is_canonical):
    _, canonical = compute_rollup([op(0, 0, 0)], random_rows.traces(0, 1), (name,))
    assert canonical.to_pylist() == [0 if is_canonical else NONE_ID]


def test_a_rollup_of_no_rows_is_empty():
    table, canonical = compute_rollup([], random_rows.traces(0, 0), canonical=pa.array([1], pa.uint32()))
    assert table.num_rows == 0
    assert canonical.to_pylist() == [1]


def test_merging_with_nothing_changes_nothing():
    table, _ = compute_rollup(random_rows.random_ops(0, 3, nodes=4), random_rows.traces(0, 3))
    assert merge(table, table.slice(0, 0)).equals(table)
    assert merge(table.slice(0, 0), table).equals(table)
