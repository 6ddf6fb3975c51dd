"""Executions of selected traces are read, whether sealed or not.

Tests collector/store/executions.py.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from fakes import random_rows
from tfprof.collector.query import step_entries
from tfprof.collector.query.step_entries import entries_by_step, persistent_bytes, read_entries, step_traces
from tfprof.collector.store import schema, segment
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.collector.tfviews.entries import Entry
from tfprof.formats import layout

CPU, GPU = (random_rows.DEVICES[number].decode().lower() for number in (random_rows.CPU, random_rows.GPU))
#: The step of each trace; OTHER_KIND_TRACE is of another kind. Generations are sealed after the
#: traces 1, 3 and 5.
STEPS = (0, 10, 20, 20, 3, 40, 50, 20)
OTHER_KIND_TRACE = 6
SEALED_AFTER = (1, 3, 5)
NODES = 3


def ops(trace: int) -> list[dict[str, int]]:
    """Return two executions of node 0 on the CPU, and two of node 1 on the GPU.

    The first execution of node 1 keeps ``trace`` bytes. The second execution of node 1 has no
    start, so its bytes do not count.
    """
    columns = {"persistent_bytes": trace, "start_ns": 7}
    return [
        random_rows.op(trace, 0, op_end_ns=1000 * (trace + 1), persistent_bytes=5),
        random_rows.op(trace, 1, random_rows.GPU, **columns),
        random_rows.op(trace, 1, random_rows.GPU, start_ns=-random_rows.BASE_NS, persistent_bytes=10**6),
        random_rows.op(trace, 0, op_end_ns=2000),
    ]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[LocalJob]:
    """A job of eight traces in four generations, the last one in a write-ahead log."""
    names = [{"kind": schema.NODE, "id": number, "text": b"n%d" % number} for number in range(NODES)]
    writer = LocalStoreWriter(tmp_path / "store", "here")
    job = writer.job(1)
    job.set_identity({"name": "train.py"})
    job.append({"names": pa.concat_tables([random_rows.device_names(), random_rows.table("names", names)])})
    for trace, step in enumerate(STEPS):
        kind = layout.STEP_KINDS[1] if trace == OTHER_KIND_TRACE else layout.STEP_KINDS[0]
        row = {"trace": trace, "step": step, "kind": kind, "base_ns": random_rows.BASE_NS, "rows": 4}
        allocation = {"trace": trace, "node": 1, "device": random_rows.GPU, "t_us": trace, "bytes": 1}
        tables = {"traces": [row], "ops": ops(trace), "allocations": [allocation]}
        job.append({name: random_rows.table(name, rows) for name, rows in tables.items()})
        if trace in SEALED_AFTER:
            job.seal()
    yield LocalStore(tmp_path / "store").job("last")
    writer.close()


def durations(entry: Entry) -> list[int]:
    """Return the durations of an entry's executions (µs)."""
    return [duration for pairs in (*entry.cpu.values(), *entry.accelerator.values()) for _, duration in pairs]


def test_steps_of_the_main_kind_have_their_traces(job: LocalJob) -> None:
    assert step_traces(job) == {0: (0,), 3: (4,), 10: (1,), 20: (2, 3, 7), 40: (5,)}


@pytest.mark.parametrize("trace", range(len(STEPS)))
def test_one_trace_has_its_own_executions(job: LocalJob, trace: int) -> None:
    entries_by_node = read_entries(job, [trace])
    assert set(entries_by_node) == {"n0", "n1"}
    (entry,) = entries_by_node["n0"].values()
    assert set(entries_by_node["n0"]) == {STEPS[trace]}
    assert durations(entry) == [trace + 1, 2]
    assert (entry.device, entries_by_node["n1"][STEPS[trace]].device) == (CPU, GPU)
    assert entries_by_node["n1"][STEPS[trace]].allocations == [(trace, 1)]


def test_traces_of_a_step_add_up_over_generations(job: LocalJob) -> None:
    assert durations(read_entries(job, [7, 2, 3])["n0"][20]) == [3, 2, 4, 2, 8, 2]


def test_only_the_generations_of_the_traces_are_read(job: LocalJob, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    real_groups = segment.groups

    def record_and_read(path: Path, name: str, traces: Sequence[int], columns: Sequence[str]) -> Iterator[pa.Table]:
        for group in real_groups(path, name, traces, columns):
            reads.append((path.name, traces))
            yield group

    monkeypatch.setattr(segment, "groups", record_and_read)
    read_entries(job, [3])
    assert sorted(reads) == [("allocations-000001.parquet", [3]), ("ops-000001.parquet", [3])]


def test_without_traces_nothing_is_read(job: LocalJob) -> None:
    assert read_entries(job, []) == {}
    assert read_entries(job, [99]) == {}


@pytest.mark.parametrize("rows", [1, 9, 200_000])
def test_steps_are_in_order_whatever_the_batch_size(job: LocalJob, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_entries, "BATCH_ROWS", rows)
    steps = list(entries_by_step(job))
    assert [step for step, _ in steps] == [0, 3, 10, 20, 40]
    assert [len(durations(entries["n0"])) for _, entries in steps] == [2, 2, 2, 6, 2]
    assert [step for step, _ in entries_by_step(job, [40, 7, 3, 50])] == [3, 40]


def test_persistent_bytes_are_the_maximum_over_steps(job: LocalJob) -> None:
    """Step 20 has the maximum: the executions of its traces 2, 3 and 7 keep 2, 3 and 7 bytes."""
    assert persistent_bytes(job) == {"n1": 2 + 3 + 7}


def test_without_a_gpu_there_are_no_persistent_bytes(tmp_path: Path) -> None:
    writer = LocalStoreWriter(tmp_path / "store", "here")
    job = writer.job(1)
    job.set_identity({"name": "train.py"})
    name = random_rows.table("names", [{"kind": schema.NODE, "id": 0, "text": b"n"}])
    tables = {"names": pa.concat_tables([random_rows.device_names(), name]), "traces": random_rows.traces(0, 1)}
    job.append({**tables, "ops": random_rows.table("ops", [random_rows.op(0, 0, persistent_bytes=5)])})
    writer.close()
    assert persistent_bytes(LocalStore(tmp_path / "store").job("last")) == {}
