import pytest
from fakes import random_rows
from fakes.made_store import HOST, IDENTITY, SECOND, START_NS, rows, write_job
from tfprof.collector.query import listing
from tfprof.collector.store import catalog, retention, small_segments
from tfprof.collector.store.catalog import host_folder, job_folder
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.store.retention import Limits, StoredJob, expired_uids, remove_expired
from tfprof.collector.store.row_follower import RowFollower
from tfprof.collector.store.writer import LocalStoreWriter

DAY_NS = 86_400 * 10**9


def test_without_limits_everything_stays():
    assert expired_uids([StoredJob(1, 0, 10**15, is_running=False)], Limits(), 10**18) == []


def test_jobs_older_than_the_limit_are_removed():
    jobs = [StoredJob(1, 0, 5, is_running=False), StoredJob(2, 50 * 10**9, 5, is_running=False)]
    assert expired_uids(jobs, Limits(max_age_s=60), 100 * 10**9) == [1]


def test_without_limits_no_job_is_read(tmp_path, monkeypatch):
    write_jobs(tmp_path, 1)
    monkeypatch.setattr(catalog, "load", None)
    assert remove_expired(tmp_path, "here", Limits(baselines=("main",)), 10**20, ()) == []


def test_the_oldest_jobs_are_removed_until_the_rest_fits():
    jobs = [StoredJob(uid, uid, 10, is_running=False) for uid in (3, 1, 2, 4)]
    assert expired_uids(jobs, Limits(max_bytes=20), 100) == [1, 2]
    assert expired_uids(jobs, Limits(max_bytes=40), 100) == []


def test_open_jobs_are_never_removed():
    jobs = [StoredJob(1, 0, 10, is_running=True), StoredJob(2, 1, 10, is_running=False)]
    assert expired_uids(jobs, Limits(max_age_s=0, max_bytes=0), 10**18) == [2]


def test_the_last_ten_ended_runs_of_a_baseline_are_kept(tmp_path):
    for uid in range(1, 13):
        write_job(tmp_path, uid, {}, identity={"name": "main"}, state=None if uid == 12 else "exited")
    write_job(tmp_path, 13, {}, identity={"name": "other"})
    assert remove_expired(tmp_path, "there", Limits(max_bytes=0, baselines=("main", "gone")), 10**20, ()) == [1, 13]


def write_jobs(path, *uids):
    store = LocalStoreWriter(path, "here")
    for uid in uids:
        store.job(uid).append({"traces": random_rows.traces(0, 1)}, 3, 1)
    store.close()


def test_a_running_job_without_a_writer_is_removed_after_a_day(tmp_path):
    write_jobs(tmp_path, 1)
    last_change_ns = job_folder(tmp_path, 1).joinpath("job.json").stat().st_mtime_ns
    limits = Limits(max_bytes=0)
    assert remove_expired(tmp_path, "here", limits, last_change_ns + DAY_NS // 2, ()) == []
    assert remove_expired(tmp_path, "there", limits, last_change_ns + 2 * DAY_NS, ()) == []
    assert remove_expired(tmp_path, "here", limits, last_change_ns + 2 * DAY_NS, ()) == [1]


def test_a_damaged_job_stays_and_does_not_prevent_retention(tmp_path):
    write_jobs(tmp_path, 1, 2)
    job_folder(tmp_path, 1).joinpath("job.json").write_text("{")
    assert remove_expired(tmp_path, "here", Limits(max_bytes=0), 10**20, ()) == [2]
    assert random_rows.sorted_names(tmp_path / "jobs") == [f"{1:016x}"]


def test_a_job_that_another_process_has_removed_is_no_error(tmp_path):
    write_jobs(tmp_path, 1)
    retention.remove(tmp_path, 1)
    retention.remove(tmp_path, 1)
    assert random_rows.sorted_names(tmp_path / "jobs") == []


def test_an_interrupted_removal_is_finished(tmp_path, monkeypatch):
    write_jobs(tmp_path, 1)
    monkeypatch.setattr(retention.shutil, "rmtree", lambda *_, **__: None)
    retention.remove(tmp_path, 1)
    monkeypatch.undo()
    assert len(random_rows.sorted_names(tmp_path / "jobs")) == 1
    remove_expired(tmp_path, "here", Limits(), 0, ())
    assert random_rows.sorted_names(tmp_path / "jobs") == []


def store_samples(writer, first, number):
    """Store ``number`` samples of HOST, one per second, as one sealed generation."""
    times = [{"t_ns": START_NS + at * SECOND} for at in range(first, first + number)]
    writer.host(HOST).append({"host_samples": rows("host_samples", times)})
    writer.host(HOST).seal()


def sample_seconds(store):
    folder = host_folder(store, HOST)
    times = LocalJob(folder, catalog.load(folder)).table("host_samples", ["t_ns"])["t_ns"].to_pylist()
    return [(time - START_NS) // SECOND for time in times]


@pytest.fixture
def unmerged_segments(monkeypatch):
    monkeypatch.setattr(small_segments, "FULL_BYTES", 0)


def write_job_opened_at(store, uid, second, host=HOST):
    write_job(store, uid, {}, identity={**IDENTITY, "host": host, "created_real_ns": START_NS + second * SECOND})


def test_host_samples_before_the_first_job_of_the_host_are_removed(tmp_path, unmerged_segments):
    write_job_opened_at(tmp_path, 1, 300)
    write_job_opened_at(tmp_path, 2, 100, host="another")
    writer = LocalStoreWriter(tmp_path, "here")
    for first in range(0, 500, 100):
        store_samples(writer, first, 100)
    writer.trim_hosts()
    assert sample_seconds(tmp_path) == list(range(200, 500))  # a segment has 100 samples, the margin is a minute
    assert len(random_rows.sorted_names(host_folder(tmp_path, HOST))) == 4
    store_samples(writer, 500, 5)
    writer.close()
    next_writer = LocalStoreWriter(tmp_path, "here")
    assert next_writer.host(HOST).info.removed == {"host_samples": 200}
    next_writer.close()
    assert sample_seconds(tmp_path) == list(range(200, 505))


def test_a_follower_of_host_samples_neither_repeats_nor_skips_rows_after_a_removal(tmp_path, unmerged_segments):
    write_job_opened_at(tmp_path, 1, 260)
    writer = LocalStoreWriter(tmp_path, "here")
    store_samples(writer, 0, 100)
    store_samples(writer, 100, 100)
    follower = RowFollower(host_folder(tmp_path, HOST), ("host_samples",))
    times = follower.new_rows()["host_samples"]["t_ns"].to_pylist()
    store_samples(writer, 200, 100)
    writer.trim_hosts()
    times += follower.new_rows()["host_samples"]["t_ns"].to_pylist()
    store_samples(writer, 300, 50)
    late_follower = RowFollower(host_folder(tmp_path, HOST), ("host_samples",))
    assert late_follower.new_rows()["host_samples"].num_rows == 150
    store_samples(writer, 350, 1)
    for row_follower in (follower, late_follower):
        assert row_follower.new_rows()["host_samples"]["t_ns"].to_pylist()[-1] == START_NS + 350 * SECOND
        assert row_follower.new_rows() == {}
    assert times == [START_NS + at * SECOND for at in range(300)]
    writer.close()


def test_no_host_sample_is_removed_while_a_job_cannot_be_read(tmp_path, unmerged_segments):
    write_job_opened_at(tmp_path, 1, 300)
    writer = LocalStoreWriter(tmp_path, "here")
    store_samples(writer, 0, 100)
    store_samples(writer, 100, 100)
    job_folder(tmp_path, 1).joinpath("job.json").write_text("{")
    writer.trim_hosts()
    writer.close()
    assert sample_seconds(tmp_path) == list(range(200))


def test_samples_of_a_host_without_jobs_are_removed_with_the_last_job(tmp_path):
    write_job_opened_at(tmp_path, 1, 0)
    write_job_opened_at(tmp_path, 2, 0)
    writer = LocalStoreWriter(tmp_path, HOST)
    store_samples(writer, 0, 100)
    store = LocalStore(tmp_path)
    first, second = (listing.selected_jobs(store, [f"{uid:016x}"], 0) for uid in (1, 2))
    listing.remove_jobs(store, first, store.remove)
    assert catalog.hosts(tmp_path) == [HOST]
    listing.remove_jobs(store, second, store.remove)
    assert catalog.hosts(tmp_path) == [HOST]  # its collector runs, and removes the samples itself
    writer.close()
    write_job_opened_at(tmp_path, 3, 0)
    listing.remove_jobs(store, listing.selected_jobs(store, [f"{3:016x}"], 0), store.remove)
    assert catalog.hosts(tmp_path) == []


def test_a_collector_removes_samples_of_other_hosts_without_jobs(tmp_path):
    writer = LocalStoreWriter(tmp_path, HOST)
    store_samples(writer, 0, 100)
    other_writer = LocalStoreWriter(tmp_path, "other")
    other_writer.trim_hosts()
    assert catalog.hosts(tmp_path) == [HOST]
    writer.close()
    other_writer.trim_hosts()
    assert catalog.hosts(tmp_path) == []
    other_writer.close()


def test_samples_of_hosts_are_part_of_the_size_of_the_store(tmp_path):
    write_job_opened_at(tmp_path, 1, 0)
    writer = LocalStoreWriter(tmp_path, HOST)
    store_samples(writer, 0, 100)
    writer.close()
    size = sum(path.stat().st_size for path in job_folder(tmp_path, 1).iterdir())
    assert remove_expired(tmp_path, "here", Limits(max_bytes=size), 0, ()) == [1]
