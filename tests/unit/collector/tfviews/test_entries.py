"""The TF profiler's entries, one for each node and step.

An entry has the executions by device, in order of arrival.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from fakes import random_rows
from tfprof.collector.store import schema
from tfprof.collector.tfviews.entries import EntriesByStep, Entry, MemoryRecord, entries

NODES = ("a", "b")
CPU, GPU, STREAM, HOST = (name.decode().lower() for name in random_rows.DEVICES)
#: The canonical device of node a is the CPU, that of node b is the GPU.
CANONICAL = {0: random_rows.CPU, 1: random_rows.GPU}
BASE_US = random_rows.BASE_NS // 1000


def entries_of(
    ops: Iterable[Mapping[str, Any]],
    steps: Mapping[int, int] | None = None,
    canonical: Mapping[int, int] | None = None,
    **tables: Iterable[Mapping[str, Any]],
) -> dict[str, EntriesByStep]:
    """Return the entries of each node, made from rows of ops.

    ``steps``: the step of each trace, by default step 0 for trace 0 and step 1 for trace 1.
    """
    traces = [
        {"trace": trace, "step": step, "base_ns": random_rows.BASE_NS}
        for trace, step in (steps or {0: 0, 1: 1}).items()
    ]
    names = [{"kind": schema.NODE, "id": number, "text": name.encode()} for number, name in enumerate(NODES)]
    names += [{"kind": schema.DEVICE, "id": number, "text": name} for number, name in enumerate(random_rows.DEVICES)]
    names += [
        {"kind": schema.DEVICE, "id": len(random_rows.DEVICES), "text": random_rows.DEVICES[random_rows.CPU].lower()}
    ]
    optional_tables = [random_rows.table(name, tables.get(name, [])) for name in ("allocations", "output_memory")]
    return entries(
        random_rows.table("ops", list(ops)),
        random_rows.table("traces", traces),
        random_rows.table("names", names),
        CANONICAL if canonical is None else canonical,
        *optional_tables,
    )


def test_each_iteration_of_a_loop_is_a_pair_in_order_of_arrival() -> None:
    rows = [
        random_rows.op(0, 0, start_ns=start, op_end_ns=duration)
        for start, duration in ((5000, 2999), (1000, 400), (5000, 7000))
    ]
    entry = entries_of(rows)["a"][0]
    assert entry.cpu == {CPU: [(BASE_US + 5, 2), (BASE_US + 1, 1), (BASE_US + 5, 7)]}
    assert (entry.start_us, entry.end_us, entry.runs) == (BASE_US + 1, BASE_US + 12, 3)
    assert (entry.device, entry.devices, entry.accelerator) == (CPU, {CPU}, {})


def test_kernels_are_separate_from_their_ops_and_other_devices_only_extend_the_time() -> None:
    rows = [
        random_rows.op(0, 1, random_rows.GPU, start_ns=10_000, op_end_ns=5000),
        random_rows.op(0, 1, random_rows.STREAM, start_ns=20_000, op_end_ns=0),
        random_rows.op(0, 1, random_rows.HOST, start_ns=1000, op_end_ns=90_000),
    ]
    entry = entries_of(rows)["b"][0]
    assert entry.cpu == {GPU: [(BASE_US + 10, 5)]}
    assert entry.accelerator == {STREAM: [(BASE_US + 20, 1)]}
    assert entry.executions == [(STREAM, [(BASE_US + 20, 1)]), (GPU, [(BASE_US + 10, 5)])]
    assert (entry.start_us, entry.end_us, entry.runs) == (BASE_US + 1, BASE_US + 91, 1)
    assert entry.devices == {GPU, STREAM, HOST}


@pytest.mark.parametrize(
    ("columns", "pair"),
    [
        ({"start_ns": 1999, "op_start_ns": 1, "op_end_ns": 1}, (1, 1)),
        ({"start_ns": 1999, "op_start_ns": 0, "op_end_ns": 1}, (1, 1)),
        ({"start_ns": 1999, "op_end_ns": 1001, "start_us_fix": 3, "end_us_fix": 5}, (4, 7)),
        ({"start_ns": -1, "op_end_ns": 1}, (-1, 1)),
        ({"start_ns": 0, "op_end_ns": -5000}, (0, -5)),
    ],
)
def test_microseconds_are_those_of_tensorflow(columns: dict[str, int], pair: tuple[int, int]) -> None:
    start, duration = pair
    assert entries_of([random_rows.op(0, 0, **columns)])["a"][0].cpu == {CPU: [(BASE_US + start, duration)]}


def test_an_execution_without_a_start_has_an_empty_entry() -> None:
    rows = [
        random_rows.op(0, 0, start_ns=-random_rows.BASE_NS, total_bytes=7),
        random_rows.op(1, 0, random_rows.HOST, start_ns=-random_rows.BASE_NS),
    ]
    assert entries_of(rows)["a"] == {0: Entry(CPU, devices={CPU}), 1: Entry(CPU, devices={HOST})}


def test_executions_on_other_cpus_or_gpus_do_not_count() -> None:
    assert entries_of([random_rows.op(0, 0, random_rows.GPU), random_rows.op(0, 1, random_rows.CPU)]) == {}


def test_device_names_ignore_case() -> None:
    entry = entries_of([random_rows.op(0, 0, len(random_rows.DEVICES)), random_rows.op(0, 0)])["a"][0]
    assert entry.cpu == {CPU: [(BASE_US, 1), (BASE_US, 1)]}
    assert len(entry.memory) == 2


def test_a_node_without_a_cpu_or_gpu_has_no_canonical_device() -> None:
    entry = entries_of([random_rows.op(0, 1, random_rows.STREAM, total_bytes=5)], canonical={})["b"][0]
    assert (entry.device, entry.runs, entry.memory) == ("", 0, [])
    assert entry.accelerator == {STREAM: [(BASE_US, 1)]}


SIZES = {"total_bytes": 100, "peak_bytes": 50, "live_bytes": -20, "output_bytes": 9, "in_use_bytes": 7}


def test_memory_is_recorded_on_the_canonical_device() -> None:
    held_sizes = {"temp_bytes": 3, "persistent_bytes": 4}
    rows = [
        random_rows.op(0, node, device, **SIZES, **held_sizes)
        for node in (0, 1)
        for device in (random_rows.CPU, random_rows.GPU, random_rows.STREAM)
    ]
    result = entries_of(rows)
    sizes = {"requested": 107, "peak": 57, "residual": -16, "output": 9, "in_use": 7, "output_memory": {}, "outputs": 0}
    on_host = {"host_temp": 3, "host_persistent": 4, "accelerator_temp": 0, "accelerator_persistent": 0}
    on_gpu = {"host_temp": 0, "host_persistent": 0, "accelerator_temp": 3, "accelerator_persistent": 4}
    assert result["a"][0].memory == [MemoryRecord(micros=BASE_US + 1, **on_host, **sizes)]
    assert result["b"][0].memory == [MemoryRecord(micros=BASE_US + 1, **on_gpu, **sizes)]


def test_memory_is_recorded_at_the_end_of_an_execution() -> None:
    (record,) = entries_of([random_rows.op(0, 0, op_end_ns=999)])["a"][0].memory
    assert record.micros == BASE_US


def test_outputs_belong_to_their_execution() -> None:
    rows = [random_rows.op(0, 0, random_rows.HOST), *[random_rows.op(trace, 0) for trace in (0, 0, 1)]]
    memory = [
        {"trace": 0, "node": 0, "device": random_rows.CPU, "execution": 1, "slot": 2, "bytes": 5, "ptr": (1 << 64) - 1},
        {"trace": 0, "node": 0, "device": random_rows.CPU, "execution": 0, "slot": 0, "bytes": 1, "ptr": 9},
        {"trace": 0, "node": 0, "device": random_rows.CPU, "execution": 0, "slot": 0, "bytes": 6, "ptr": 8},
        {"trace": 1, "node": 0, "device": random_rows.CPU, "execution": 0, "slot": 1, "bytes": 3, "ptr": 0},
    ]
    result = entries_of(rows, output_memory=memory)["a"]
    assert [record.output_memory for record in result[0].memory] == [{0: (6, 8)}, {2: (5, (1 << 64) - 1)}]
    assert [record.output_memory for record in result[1].memory] == [{1: (3, 0)}]


def test_allocations_are_those_on_the_canonical_device_in_order() -> None:
    rows = [random_rows.op(0, 1, random_rows.GPU), random_rows.op(0, 1, random_rows.STREAM)]
    allocations = [
        {"trace": 0, "node": 1, "device": device, "t_us": at, "bytes": size}
        for device, at, size in ((random_rows.GPU, 9, 5), (random_rows.STREAM, 1, 1), (random_rows.GPU, 3, -5))
    ]
    allocations.append({"trace": 7, "node": 1, "device": random_rows.GPU, "t_us": 1, "bytes": 1})
    assert entries_of(rows, allocations=allocations)["b"][0].allocations == [(9, 5), (3, -5)]


def test_traces_of_one_step_add_up_and_others_are_left_out() -> None:
    rows = [random_rows.op(trace, 0, op_end_ns=1000 * (trace + 1)) for trace in range(4)]
    result = entries_of(rows, steps={0: 5, 2: 5, 3: 6})["a"]
    assert {step: entry.cpu[CPU] for step, entry in result.items()} == {
        5: [(BASE_US, 1), (BASE_US, 3)],
        6: [(BASE_US, 4)],
    }


def test_sums_are_those_of_the_rollup() -> None:
    """Entries and rollup are computed from the same rows."""
    rows = [row for trace in range(8) for row in random_rows.random_ops(trace, 1, nodes=2, seed=trace)]
    bases = dict.fromkeys(range(8), random_rows.BASE_NS)
    rollup = random_rows.plain_rollup(rows, bases)
    canonical = {row["node"]: row["canonical"] for row in rollup if row["device"] == schema.NONE_ID}
    canonical = {node: device for node, device in canonical.items() if device != schema.NONE_ID}
    result = entries_of(rows, steps=dict(enumerate(range(8))), canonical=canonical)
    assert {name: len(steps) for name, steps in result.items()} == {
        NODES[row["node"]]: row["traces"] for row in rollup if row["device"] == schema.NONE_ID
    }
    for row in rollup:
        if row["device"] == canonical.get(row["node"]):
            node_entries = list(result[NODES[row["node"]]].values())
            assert sum(entry.runs for entry in node_entries) == row["runs"] > 0
            durations = [duration for entry in node_entries for pairs in entry.cpu.values() for _, duration in pairs]
            assert sum(durations) == row["sum_us"]
            assert sum(record.peak for entry in node_entries for record in entry.memory) == row["peak_bytes"]
            assert sum(record.residual for entry in node_entries for record in entry.memory) == row["residual_bytes"]
