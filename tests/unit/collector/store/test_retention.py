from fakes import stored
from tfprof.collector.store import retention
from tfprof.collector.store.catalog import job_folder
from tfprof.collector.store.retention import Limits, StoredJob, expired, retain
from tfprof.collector.store.writer import LocalStoreWriter

DAY_NS = 86_400 * 10**9


def test_without_limits_everything_stays():
    assert expired([StoredJob(1, 0, 10**15, open=False)], Limits(), 10**18) == []


def test_jobs_older_than_the_limit_are_removed():
    jobs = [StoredJob(1, 0, 5, open=False), StoredJob(2, 50 * 10**9, 5, open=False)]
    assert expired(jobs, Limits(max_age_s=60), 100 * 10**9) == [1]


def test_the_oldest_jobs_are_removed_until_the_rest_fits():
    jobs = [StoredJob(uid, uid, 10, open=False) for uid in (3, 1, 2, 4)]
    assert expired(jobs, Limits(max_bytes=20), 100) == [1, 2]
    assert expired(jobs, Limits(max_bytes=40), 100) == []


def test_open_jobs_are_never_removed():
    jobs = [StoredJob(1, 0, 10, open=True), StoredJob(2, 1, 10, open=False)]
    assert expired(jobs, Limits(max_age_s=0, max_bytes=0), 10**18) == [2]


def written(path, *uids):
    store = LocalStoreWriter(path, "here")
    for uid in uids:
        store.job(uid).append({"traces": stored.traces(0, 1)}, 3, 1)
    store.close()


def test_a_running_job_without_a_writer_is_removed_after_a_day(tmp_path):
    written(tmp_path, 1)
    last = job_folder(tmp_path, 1).joinpath("job.json").stat().st_mtime_ns
    limits = Limits(max_bytes=0)
    assert retain(tmp_path, "here", limits, last + DAY_NS // 2) == []
    assert retain(tmp_path, "there", limits, last + 2 * DAY_NS) == []
    assert retain(tmp_path, "here", limits, last + 2 * DAY_NS) == [1]


def test_a_damaged_job_stays_and_does_not_prevent_retention(tmp_path):
    written(tmp_path, 1, 2)
    job_folder(tmp_path, 1).joinpath("job.json").write_text("{")
    assert retain(tmp_path, "here", Limits(max_bytes=0), 10**20) == [2]
    assert stored.listed(tmp_path / "jobs") == [f"{1:016x}"]


def test_a_job_that_another_process_has_removed_is_no_error(tmp_path):
    written(tmp_path, 1)
    retention.remove(tmp_path, 1)
    retention.remove(tmp_path, 1)
    assert stored.listed(tmp_path / "jobs") == []


def test_an_interrupted_removal_is_finished(tmp_path, monkeypatch):
    written(tmp_path, 1)
    monkeypatch.setattr(retention.shutil, "rmtree", lambda *_, **__: None)
    retention.remove(tmp_path, 1)
    monkeypatch.undo()
    assert len(stored.listed(tmp_path / "jobs")) == 1
    retain(tmp_path, "here", Limits(), 0)
    assert stored.listed(tmp_path / "jobs") == []
