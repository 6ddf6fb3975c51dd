import contextlib
import errno
import itertools
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import random_rows
from tfprof.collector.errors import StoreError
from tfprof.collector.store import lock, sealing, wal
from tfprof.collector.store.catalog import job_folder, lock_file
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter

UID = 0xABC
TRACES = random_rows.traces(0, 12)
BASE = dict(zip(TRACES["trace"].to_pylist(), TRACES["base_ns"].to_pylist(), strict=True))
ROWS = [random_rows.random_ops(number, 1, nodes=5, seed=number) for number in range(12)]


class Crash(BaseException):
    """The simulated end of the process."""


class FaultInjector:
    """Counts the calls that change the disk, and lets call number ``fail_at`` raise ``error``.

    After a `Crash` all later calls raise it, too.
    """

    FUNCTIONS = (
        (os, "open"),
        (os, "write"),
        (os, "fsync"),
        (os, "pwritev"),
        (os, "ftruncate"),
        (pathlib.Path, "replace"),
        (pathlib.Path, "unlink"),
    )

    def __init__(self, monkeypatch, fail_at, error):
        self.calls, self.fail_at, self.error = 0, fail_at, error
        for owner, name in self.FUNCTIONS:
            monkeypatch.setattr(owner, name, self._guard(getattr(owner, name)))

    def _guard(self, function):
        def call(*args, **kwargs):
            self.calls += 1
            if self.calls == self.fail_at or (self.calls > self.fail_at and isinstance(self.error, Crash)):
                raise self.error
            return function(*args, **kwargs)

        return call


def append(job, number):
    tables = {"ops": random_rows.table("ops", ROWS[number]), "traces": TRACES.slice(number, 1)}
    if not number:
        tables["names"] = random_rows.device_names()
    job.append(tables, 3, number + 1)


def check_job(path, count):
    """Check that the job has the first ``count`` traces, each once, and their rollup."""
    job = LocalStore(path, "here").job("last")
    assert job.table("traces") == TRACES.slice(0, count)
    rows = [row for number in range(count) for row in ROWS[number]]
    order = [
        (name, "ascending")
        for name in ("trace", "node", "device", "start_ns", "op_start_ns", "op_end_ns", "total_bytes")
    ]
    assert job.table("ops").sort_by(order).equals(random_rows.table("ops", rows).sort_by(order))
    assert job.rollup().to_pylist() == random_rows.plain_rollup(rows, BASE)


def open_job_sealed_once(path):
    """Return a store and its job, whose next sealing replaces a total."""
    store = LocalStoreWriter(path, "here")
    job = store.job(UID)
    for number in range(6):
        append(job, number)
        if number == 2:
            job.seal()
    return store, job


def calls_of_a_sealing(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        store, job = open_job_sealed_once(tmp_path / "counted")
        injector = FaultInjector(patch, 10**9, Crash())
        job.seal()
    store.close()
    return injector.calls


def test_a_crash_at_any_step_of_a_sealing_loses_and_doubles_nothing(tmp_path):
    steps = calls_of_a_sealing(tmp_path)
    assert steps > 20
    for at in range(1, steps + 1):
        path = tmp_path / str(at)
        with pytest.MonkeyPatch.context() as patch:
            store, job = open_job_sealed_once(path)
            FaultInjector(patch, at, Crash())
            with pytest.raises(Crash):
                job.seal()
        check_job(path, 6)
        store._lock.release()
        reopened = LocalStoreWriter(path, "here")
        job = reopened.job(UID)
        assert job.acked(3) == 6
        check_job(path, 6)
        append(job, 6)
        job.seal()
        check_job(path, 7)
        leftover_names = [
            name for name in random_rows.sorted_names(job.folder) if name.startswith((".", "wal-", "total-"))
        ]
        assert leftover_names == [f"total-{job.info.sealed:06d}.parquet"]
        reopened.close()


def test_an_error_at_any_step_of_a_sealing_changes_nothing(tmp_path):
    for at in range(1, calls_of_a_sealing(tmp_path) + 1):
        path = tmp_path / str(at)
        store, job = open_job_sealed_once(path)
        with pytest.MonkeyPatch.context() as patch:
            FaultInjector(patch, at, OSError(errno.EIO, "Input/output error"))
            with contextlib.suppress(StoreError):
                job.seal()
        check_job(path, 6)
        append(job, 6)
        check_job(path, 7)
        job.seal()
        check_job(path, 7)
        store.close()


def test_a_crash_at_any_step_of_opening_and_appending_loses_nothing_acked(tmp_path):
    def open_and_append(path):
        store = LocalStoreWriter(path, "here")
        job = store.job(UID)
        acked.append(job.acked(3))
        for number in range(job.acked(3), 3):
            append(job, number)
            acked.append(number + 1)
        store.close()

    for at in range(1, 60):
        path = tmp_path / str(at)
        acked = [0]
        with pytest.MonkeyPatch.context() as patch:
            FaultInjector(patch, at, Crash())
            with contextlib.suppress(Crash):
                open_and_append(path)
        lock_path = lock_file(path, "here")
        if lock_path.exists():
            _release_lock(lock_path)
        acked_before = acked[-1]
        open_and_append(path)
        assert acked[-1] == 3
        assert acked_before <= 3
        check_job(path, 3)


def _release_lock(path):
    """Close the lock file of an abandoned writer in this process."""
    for entry in list(pathlib.Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):
            if entry.readlink() == path:
                os.close(int(entry.name))
    assert lock.holder(path) is None


WRITER_CODE = """
import sys, pyarrow as pa
sys.path.insert(0, {tests!r})
from fakes import random_rows
from tfprof.collector.store.writer import LocalStoreWriter
store = LocalStoreWriter(sys.argv[1], "here")
job = store.job(0xABC)
number = job.acked(3)
print("ready", number, flush=True)
while True:
    ops = random_rows.table("ops", [random_rows.op(number, node) for node in range(4)])
    tables = {{"ops": ops, "traces": random_rows.traces(number, 1)}}
    if not number:
        tables["names"] = random_rows.device_names()
    number += 1
    job.append(tables, 3, number)
    print("acked", number, flush=True)
    if number % 3 == 0:
        job.seal()
"""


def test_nothing_acked_is_lost_when_the_writer_is_killed(tmp_path):
    rng = random.Random(1)
    tests = str(pathlib.Path(__file__).parents[3])
    stored_count = 0
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER_CODE.format(tests=tests), str(tmp_path)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout.readline() == f"ready {stored_count}\n".encode() or stored_count
            time.sleep(rng.uniform(0.02, 0.15))
            process.send_signal(signal.SIGKILL)
            lines = process.stdout.read().split(b"\n")
        last_acked = max([stored_count, *(int(line.split()[1]) for line in lines[:-1])])
        store = LocalStoreWriter(tmp_path, "here")
        job = store.job(UID)
        assert job.acked(3) >= last_acked
        stored_count = job.acked(3)
        assert job.table("traces")["trace"].to_pylist() == list(range(stored_count))
        assert job.table("ops").num_rows == 4 * stored_count
        store.close()
        counts = LocalStore(tmp_path, "here").job("last").rollup()
        assert set(counts["traces"].to_pylist()) == ({stored_count} if stored_count else set())
    assert stored_count > 3


def test_a_damaged_total_is_reported_and_other_jobs_continue(tmp_path):
    store, job = open_job_sealed_once(tmp_path)
    (job_folder(tmp_path, UID) / "total-000000.parquet").write_bytes(b"PAR1 rubbish PAR1")
    other_job = store.job(1)
    append(other_job, 0)
    with pytest.raises(StoreError, match="total-000000") as caught:
        job.seal()
    assert caught.value.slug == "store-damaged"
    other_job.seal()
    assert isinstance(other_job.table("ops"), pa.Table)
    store.close()


@pytest.mark.parametrize("part_rows", [1, 40, 1_000_000])
def test_row_groups_hold_whole_traces_in_order_of_nodes_and_share_one_rollup(part_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(sealing, "PART_ROWS", part_rows)
    monkeypatch.setattr(wal, "GROUP_BYTES", 1)
    writer = LocalStoreWriter(tmp_path, "here")
    job = writer.job(UID)
    for number in range(12):
        append(job, number)
    job.seal()
    writer.close()
    check_job(tmp_path, 12)
    file = pq.ParquetFile(job.folder / "ops-000000.parquet")
    groups = [file.read_row_group(number) for number in range(file.num_row_groups)]
    assert part_rows == 40 or len(groups) == {1: 12, 1_000_000: 1}[part_rows]
    traces = [set(group["trace"].to_pylist()) for group in groups]
    assert all(max(before) < min(after) for before, after in itertools.pairwise(traces))
    keys = [
        list(zip(*(group[name].to_pylist() for name in ("node", "device", "trace")), strict=True)) for group in groups
    ]
    assert keys == [sorted(group) for group in keys]
