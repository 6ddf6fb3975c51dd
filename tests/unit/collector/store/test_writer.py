import errno
import json
import os
import stat

import pytest
from fakes import random_rows
from fakes.made_store import host_samples, raise_error
from tfprof.collector.errors import StoreError
from tfprof.collector.store import catalog, durable, store_files, writer
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.retention import Limits, remove_expired
from tfprof.collector.store.writer import LocalStoreWriter

UID = 0xABC


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def store(path):
    store = LocalStoreWriter(path, "here")
    yield store
    store.close()


def trace_tables(number, nodes=3):
    rows = [random_rows.op(number, node) for node in range(nodes)]
    return {"ops": random_rows.table("ops", rows), "traces": random_rows.traces(number, 1)}


def test_appended_rows_survive_a_restart(path):
    store = LocalStoreWriter(path, "here")
    job = store.job(UID)
    job.append({**trace_tables(0), "names": random_rows.device_names()}, 3, 5)
    job.append({}, 4, 2)
    store.close()
    reopened = LocalStoreWriter(path, "here")
    job = reopened.job(UID)
    assert [job.acked(about) for about in (3, 4, 5)] == [5, 2, 0]
    assert (job.table("ops").num_rows, job.table("spans").num_rows) == (3, 0)
    assert job.table("names") == random_rows.device_names()
    job.append(trace_tables(1), 3, 6)
    assert job.table("traces", ["trace"])["trace"].to_pylist() == [0, 1]
    reopened.close()


def test_numbers_and_rows_continue_across_sealed_generations(path):
    store = LocalStoreWriter(path, "here")
    job = store.job(UID)
    for number in range(3):
        job.append(trace_tables(number), 3, number + 1)
        job.seal()
    store.close()
    reopened = LocalStoreWriter(path, "here")
    job = reopened.job(UID)
    assert (job.acked(3), job.table("ops").num_rows, job.info.sealed, job.info.total) == (3, 9, 2, 2)
    reopened.close()


def test_sealing_leaves_segments_one_total_and_no_log(store):
    job = store.job(UID)
    for number in range(2):
        job.append({**trace_tables(number), "events": random_rows.table("events", [{"slug": "x"}])}, 3, number + 1)
        job.seal()
    expected = {f"{name}-00000{number}.parquet" for name in ("ops", "rollup", "times") for number in (0, 1)}
    expected |= {f"{name}-000001.parquet" for name in ("events", "total", "total_times", "traces")}
    assert set(random_rows.sorted_names(job.folder)) == {*expected, "job.json"}


def test_a_generation_without_ops_keeps_the_total_of_an_earlier_one(store):
    job = store.job(UID)
    job.append(trace_tables(0), 3, 1)
    job.seal()
    job.append({"samples": random_rows.table("samples", [{}])}, 6, 1)
    job.seal()
    assert (job.info.sealed, job.info.total) == (1, 0)
    assert (job.folder / "total-000000.parquet").exists()


def test_a_generation_without_appends_is_not_sealed(store):
    job = store.job(UID)
    job.seal()
    assert (job.info.sealed, random_rows.sorted_names(job.folder)) == (-1, ["job.json"])


def test_a_generation_is_due_by_rows_bytes_or_age(store, monkeypatch):
    job = store.job(UID)
    assert not job.seal_if_due(0.0)
    job.append(trace_tables(0), 3, 1)
    assert not job.seal_if_due(0.0)
    assert not job.seal_if_due(writer.SEAL_SECONDS - 1)
    assert job.seal_if_due(writer.SEAL_SECONDS)
    job.append(trace_tables(1), 3, 2)
    assert not job.seal_if_due(writer.SEAL_SECONDS + 1)
    monkeypatch.setattr(writer, "SEAL_ROWS", 3)
    assert job.seal_if_due(writer.SEAL_SECONDS + 1)
    job.append({"spans": random_rows.table("spans", [{}])}, 4, 2)
    assert not job.seal_if_due(writer.SEAL_SECONDS + 2)
    monkeypatch.setattr(writer, "SEAL_BYTES", 100)
    assert job.seal_if_due(writer.SEAL_SECONDS + 2)


def test_a_log_that_cannot_be_sealed_does_not_grow_without_end(store, monkeypatch):
    monkeypatch.setattr(store_files, "LOG_BYTES_MAX", 10_000)
    job = store.job(UID)
    for number in range(2):
        job.append(trace_tables(number), 3, number + 1)
        job.seal()
    total = job.folder / "total-000001.parquet"
    content = total.read_bytes()
    total.write_bytes(b"damaged")
    log = job.folder / "wal-000002.log"
    while not log.exists() or log.stat().st_size < 10_000:
        job.append(trace_tables(job.acked(3)), 3, job.acked(3) + 1)
    count = job.acked(3)
    with pytest.raises(StoreError, match="total-000001"):
        job.append(trace_tables(count), 3, count + 1)
    total.write_bytes(content)
    job.append(trace_tables(count), 3, count + 1)
    assert job.table("traces", ["trace"])["trace"].to_pylist() == list(range(count + 1))


def test_a_damaged_job_is_refused_before_anything_is_written(path, store):
    store.job(UID).append(trace_tables(0), 3, 1)
    store.release(UID)
    folder = catalog.job_folder(path, UID)
    (folder / "wal-000000.log").unlink()
    os.mkfifo(folder / "wal-000000.log")
    content = (folder / "job.json").read_bytes()
    store.close()
    successor = LocalStoreWriter(path, "here")
    with pytest.raises(StoreError, match="wal-000000"):
        successor.job(UID)
    assert (folder / "job.json").read_bytes() == content
    successor.close()


def test_a_tick_seals_one_generation_at_most(store, monkeypatch):
    monkeypatch.setattr(writer, "SEAL_ROWS", 3)
    jobs = [store.job(uid) for uid in range(3)]
    for job in jobs:
        job.append(trace_tables(0), 3, 1)
    sealed_counts = []
    for now in range(4):
        store.tick(float(now), raise_error)
        sealed_counts.append(sum(job.info.sealed == 0 for job in jobs))
    assert sealed_counts == [1, 2, 3, 3]


def test_a_tick_continues_with_the_other_jobs_after_a_failure(store, monkeypatch):
    monkeypatch.setattr(writer, "SEAL_ROWS", 3)
    failing_job, good_job = store.job(1), store.job(2)
    for job in (failing_job, good_job):
        job.append(trace_tables(0), 3, 1)
    monkeypatch.setattr(failing_job, "seal", lambda: (_ for _ in ()).throw(StoreError("full", "store-full")))
    with pytest.raises(StoreError, match="full"):
        store.tick(0.0, raise_error)
    assert good_job.info.sealed == 0


def test_a_failed_sealing_is_not_repeated_at_once(store, monkeypatch):
    monkeypatch.setattr(writer, "SEAL_ROWS", 3)
    job = store.job(UID)
    job.append(trace_tables(0), 3, 1)
    monkeypatch.setattr(durable, "replace", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(StoreError):
        job.seal_if_due(10.0)
    assert not job.seal_if_due(10.5)
    monkeypatch.undo()
    monkeypatch.setattr(writer, "SEAL_ROWS", 3)
    assert job.seal_if_due(12.0)


def test_logs_are_fsynced_every_five_seconds_while_they_change(store, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    job = store.job(UID)
    counts = []
    for now in (0.0, 4.0, 5.0, 9.0, 15.0):
        if now < 10:
            job.append({}, 3, 1)
        job.sync_if_due(now)
        counts.append(len(synced))
    assert counts == [1, 1, 2, 2, 3]


@pytest.mark.parametrize(("logs_a_sync", "expected"), [(1, [2, 4, 5, 5]), (5, [2, 4, 5, 5]), (6, [1, 2, 3, 4])])
def test_a_tick_fsyncs_a_limited_number_of_logs_and_starts_with_those_that_wait_longest(
    store, monkeypatch, logs_a_sync, expected
):
    synced = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    monkeypatch.setattr(writer, "SYNCS_A_TICK", 2)
    monkeypatch.setattr(writer, "LOGS_A_SYNC", logs_a_sync)
    for uid in range(1, 6):
        store.job(uid).append({}, 3, 1)
    counts = []
    for now in (0.0, 0.1, 0.2, 0.3):
        store.tick(now, raise_error)
        counts.append(len(synced))
    assert counts == expected
    assert len(set(synced)) == counts[-1]


def test_counters_are_written_every_five_seconds_and_at_the_end(path, store):
    job = store.job(UID)

    def stored_counters():
        return json.loads((job.folder / "job.json").read_text())["counters"]

    job.set_counters({"records": 1})
    assert stored_counters() == {}
    job.sync_if_due(0.0)
    assert stored_counters() == {"records": 1}
    job.set_counters({"records": 2})
    job.sync_if_due(4.5)
    assert stored_counters() == {"records": 1}
    store.close()
    assert stored_counters() == {"records": 2}


def test_state_and_identity_are_written_at_once(path, store):
    job = store.job(UID)
    job.set_identity({"name": "train.py"})
    assert (LocalStore(path, "here").job("last").info.state, job.info.name) == ("running", "train.py")
    job.append(trace_tables(0), 3, 1)
    job.close("killed", {"signal": 9})
    info = LocalStore(path, "here").job("last").info
    assert (info.state, info.end, info.sealed) == ("killed", {"signal": 9}, 0)
    assert info.closed_ns >= info.opened_ns


def test_a_job_that_is_opened_again_runs_again(store):
    job = store.job(UID)
    job.set_identity({"name": "train.py"})
    job.close("lost")
    job.set_identity({"name": "train.py"})
    assert (job.info.state, job.info.closed_ns) == ("running", None)


def test_a_full_disk_stores_nothing_and_the_same_append_works_later(store, monkeypatch):
    job = store.job(UID)
    job.append(trace_tables(0), 3, 1)
    monkeypatch.setattr(os, "pwritev", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
    with pytest.raises(StoreError) as caught:
        job.append(trace_tables(1), 3, 2)
    assert caught.value.slug == "store-full"
    assert (job.acked(3), job.table("ops").num_rows) == (1, 3)
    monkeypatch.undo()
    job.append(trace_tables(1), 3, 2)
    assert (job.acked(3), job.table("ops").num_rows) == (2, 6)


def test_a_folder_that_cannot_be_found_for_a_moment_doubles_no_rows(store, monkeypatch):
    job = store.job(UID)
    job.append(trace_tables(0), 3, 1)
    monkeypatch.setattr(durable.FileId, "of", lambda _path: None)
    with pytest.raises(StoreError) as caught:
        job.append(trace_tables(1), 3, 2)
    assert caught.value.slug == "store-removed"
    monkeypatch.undo()
    job.append(trace_tables(1), 3, 2)
    assert (job.acked(3), job.table("ops").num_rows) == (2, 6)


def test_a_log_can_start_after_a_full_disk_prevented_its_start(store, monkeypatch):
    job = store.job(UID)
    monkeypatch.setattr(os, "pwritev", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
    with pytest.raises(StoreError):
        job.append(trace_tables(0), 3, 1)
    monkeypatch.undo()
    job.append(trace_tables(0), 3, 1)
    assert job.table("ops").num_rows == 3


def test_a_second_collector_of_the_host_is_refused_with_the_process_of_the_first(path, store):
    with pytest.raises(StoreError, match=rf"process {os.getpid()} on here") as caught:
        LocalStoreWriter(path, "here")
    assert caught.value.slug == "store-in-use"


def test_collectors_of_two_hosts_share_a_store(path, store):
    other_collector = LocalStoreWriter(path, "there")
    other_collector.job(1).append(trace_tables(0), 3, 1)
    store.job(2).append(trace_tables(0), 3, 1)
    assert [job.info.uid for job in LocalStore(path, "here").jobs()] == [1, 2]
    other_collector.close()


@pytest.mark.parametrize("version", [3, 7])
def test_a_store_of_another_version_is_refused_with_both_versions(path, version):
    path.mkdir()
    (path / "store.json").write_text(f'{{"version": {version}}}')
    with pytest.raises(StoreError, match=rf"version {version}, .* reads versions 2 and 4") as caught:
        LocalStoreWriter(path, "here")
    assert caught.value.slug == "store-version"


def test_an_unwritable_store_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file") as caught:
        LocalStoreWriter(tmp_path / "file" / "store", "here")
    assert caught.value.slug == "store-unwritable"


def test_all_files_and_folders_are_private(path, store):
    job = store.job(UID)
    job.append({**trace_tables(0), "names": random_rows.device_names()}, 3, 1)
    job.seal()
    job.append(trace_tables(1), 3, 2)
    store.host("here").append({"host_samples": random_rows.table("host_samples", [{}])}, 6, 1)
    modes = {entry: stat.S_IMODE(entry.stat().st_mode) for entry in (path, *path.rglob("*"))}
    assert modes == {entry: 0o700 if entry.is_dir() else 0o600 for entry in modes}


def test_the_samples_of_a_host_are_stored_like_those_of_a_job(path, store):
    name = "../odd host/"
    host = store.host(name)
    host.append({"host_samples": random_rows.table("host_samples", [{"cpus": 4}])}, 6, 1)
    host.seal()
    host.append({"host_samples": random_rows.table("host_samples", [{"cpus": 5}])}, 6, 2)
    reader = LocalStore(path, "here")
    assert catalog.hosts(reader.path) == [name]
    assert host_samples(path, name)["cpus"].to_pylist() == [4, 5]
    assert host.folder.parent == path / "hosts"


def test_a_released_job_can_be_opened_again(store):
    store.job(UID).append(trace_tables(0), 3, 1)
    store.release(UID)
    assert store.job(UID).acked(3) == 1


def test_expired_jobs_are_removed_but_not_those_that_are_open(path, store):
    for uid, state in ((1, "exited"), (2, "exited"), (3, None)):
        store.job(uid).append(trace_tables(0), 3, 1)
        if state:
            store.job(uid).close(state)
            store.release(uid)
    later = store.job(3).info.opened_ns + 10**15
    assert remove_expired(path, "here", Limits(max_age_s=60.0), later, {3}) == [1, 2]
    assert [job.info.uid for job in LocalStore(path, "here").jobs()] == [3]
    assert random_rows.sorted_names(path / "jobs") == [f"{3:016x}"]
