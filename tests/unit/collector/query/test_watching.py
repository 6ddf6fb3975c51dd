"""The current state of all jobs: new rows are read, slow jobs are found."""

import math
import shutil
import socket
from dataclasses import replace

import pytest
from fakes.made_store import IDENTITY, MS, SECOND, START_NS, rows, span
from tfprof.collector.alerts.alert import Alert
from tfprof.collector.errors import StoreError
from tfprof.collector.query.watching import ORDERS, Watch, WatchedJob, filtered_jobs, recent, sorted_jobs
from tfprof.collector.store import catalog
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.formats import layout

HOST = socket.gethostname()
NOW = START_NS + 300 * SECOND


def store_job(
    writer: LocalStoreWriter, uid: int, *stretches: tuple[int, float], name: str = "train.py", samples: int = 10
) -> None:
    """Store a job that runs until NOW.

    ``stretches``: (number of steps, ms per step); the last stretch ends at NOW.
    """
    job = writer.job(uid)
    job.set_identity({**IDENTITY, "name": name, "host": HOST})
    start_ms = 300_000 - sum(number * ms for number, ms in stretches)
    entries = []
    for number, ms in stretches:
        entries += [span(layout.BATCH, len(entries) + n, start_ms + n * ms, ms) for n in range(number)]
        start_ms += number * ms
    sample_rows = [
        {"t_ns": NOW - (samples - 1 - n) * SECOND, "cpu_user_s": 2.0 * n, "rss_bytes": 10**9, "read_bytes": n * 5000}
        for n in range(samples)
    ]
    job.append({"spans": rows("spans", entries), "samples": rows("samples", sample_rows)})


def jobs_by_id(watch: Watch, now_ns: int = NOW) -> dict[str, WatchedJob]:
    return {job.row.id: job for job in watch.update(now_ns).jobs}


def test_a_job_has_its_pace_and_its_resource_use(writer: LocalStoreWriter) -> None:
    store_job(writer, 0xA << 60, (1000, 100))
    job = jobs_by_id(Watch(LocalStore(writer.path)))["a000"]
    assert (job.row.phase, job.row.step_kind, job.row.steps) == ("running", "batch", 1000)
    assert (job.pace.step_ns, job.pace.change, job.is_slow) == (100 * MS, 1.0, False)
    assert (job.usage.cpu_cores, job.usage.memory_bytes, job.usage.io_bytes_per_s) == (2.0, 10**9, 5000.0)


def test_the_number_of_steps_includes_those_after_the_last_counters(writer: LocalStoreWriter) -> None:
    store_job(writer, 0xA << 60, (1000, 100))
    counters = {"counts": {"batch": 960}, "times": {"batch": 96 * SECOND}, "failed": {"batch": 10}}
    job = writer.job(0xA << 60)
    job.set_counters(counters)
    job.sync_if_due(math.inf)
    assert jobs_by_id(Watch(LocalStore(writer.path)))["a000"].row.steps == 999 - 10


def test_all_steps_of_the_fifty_watched_functions_of_a_job_are_counted(writer: LocalStoreWriter) -> None:
    keys = [key % 60 for key in range(240)]
    entries = [span(layout.FUNCTION, n, 290_000 + 40 * n, 40, key=key) for n, key in enumerate(keys)]
    job = writer.job(0xB << 60)
    job.set_identity({**IDENTITY, "host": HOST})
    job.append({"spans": rows("spans", entries)})
    watch = Watch(LocalStore(writer.path))
    watch.update(NOW)
    assert list(watch._running[0xB << 60].live._steps.values()) == [4] * 50


def test_a_forged_span_without_steps_hides_no_other_job(writer: LocalStoreWriter) -> None:
    store_job(writer, 0xA << 60, (10, 100))
    store_job(writer, 0xB << 60, (10, 100))
    writer.job(0xB << 60).append({"spans": rows("spans", [span(layout.BATCH, 11, 299_000, 100, count=0)])})
    assert jobs_by_id(Watch(LocalStore(writer.path))).keys() == {"a000", "b000"}


def test_a_job_that_runs_again_is_found_after_the_clock_was_set_back(writer: LocalStoreWriter) -> None:
    store_job(writer, 0xA << 60, (10, 100))
    writer.job(0xA << 60).close("detached", {"t_ns": NOW})
    watch = Watch(LocalStore(writer.path))
    assert jobs_by_id(watch)["a000"].row.state == "detached"
    store_job(writer, 0xA << 60, (10, 100))
    assert jobs_by_id(watch, NOW - 3600 * SECOND)["a000"].row.state == "running"


def test_slow_and_idle_jobs_come_first(writer: LocalStoreWriter) -> None:
    store_job(writer, 0xA << 60, (2000, 100))
    store_job(writer, 0xB << 60, (1500, 100), (100, 300))
    store_job(writer, 0xC << 60, (1000, 100))
    store_job(writer, 0xD << 60)
    later = NOW + 15 * SECOND
    watch = Watch(LocalStore(writer.path))
    for uid in (0xA << 60, 0xB << 60):
        writer.job(uid).append(
            {"spans": rows("spans", [span(layout.BATCH, 9999, 314_000, 300 if uid >> 60 == 0xB else 100)])}
        )
    jobs = watch.update(later).jobs
    assert [job.row.id for job in sorted_jobs(jobs, "slow")][:2] == ["c000", "b000"]
    by_id = {job.row.id: job for job in jobs}
    assert by_id["c000"].idle_ns == 15 * SECOND
    assert by_id["b000"].pace.change == pytest.approx(3.0)
    assert by_id["d000"].row.phase == "starting"
    assert [job.row.id for job in jobs if job.is_slow] == ["b000", "c000"]


def test_a_recent_alert_is_shown_and_brings_its_job_forward(writer: LocalStoreWriter) -> None:
    store_job(writer, 0xA << 60, (1000, 100))
    store_job(writer, 0xB << 60, (1000, 100))
    watch = Watch(LocalStore(writer.path))
    assert [job.alert for job in jobs_by_id(watch).values()] == [None, None]
    alerts = [Alert(NOW - SECOND, NOW, "spike"), Alert(NOW, NOW, "memory-growth", before=1e9, now=2e9)]
    writer.job(0xB << 60).append({"alerts": rows("alerts", [alert._asdict() for alert in alerts])})
    jobs = watch.update(NOW + SECOND).jobs
    assert [(job.row.id, job.alert) for job in sorted_jobs(jobs, "slow")] == [("b000", "memory-growth"), ("a000", None)]
    assert jobs_by_id(watch, NOW + 601 * SECOND)["b000"].alert is None


def test_each_update_reads_only_new_rows(writer: LocalStoreWriter) -> None:
    store_job(writer, 0xA << 60, (1000, 100))
    watch = Watch(LocalStore(writer.path))
    jobs_by_id(watch)
    for number in range(20):
        start_ms = 300_000 + number * 1000
        writer.job(0xA << 60).append({"spans": rows("spans", [span(layout.BATCH, number, start_ms, 900)])})
        job = jobs_by_id(watch, NOW + number * SECOND)["a000"]
    assert job.pace.change == 9.0
    assert job.usage.cpu_cores is None, "the last sample is old"


def test_jobs_that_ended_some_minutes_ago_are_not_recent(writer: LocalStoreWriter) -> None:
    store_job(writer, 0xA << 60, (10, 100))
    watch = Watch(LocalStore(writer.path))
    assert jobs_by_id(watch)["a000"].row.phase == "running"
    writer.job(0xA << 60).close("exited", {"t_ns": NOW})
    assert jobs_by_id(watch, NOW + SECOND)["a000"].row.phase == "ended"
    later = watch.update(NOW + 700 * SECOND)
    assert [job.row.state for job in later.jobs] == ["exited"]
    assert recent(later).jobs == ()


def test_the_job_files_of_ended_jobs_are_read_again_only_after_a_change(
    writer: LocalStoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for uid in (0xA << 60, 0xB << 60):
        store_job(writer, uid, (10, 100))
        writer.job(uid).close("exited", {"t_ns": NOW})
    watch = Watch(LocalStore(writer.path))
    jobs_by_id(watch)
    loaded = []
    load = catalog.load
    monkeypatch.setattr(catalog, "load", lambda folder: loaded.append(folder.name) or load(folder))
    jobs_by_id(watch, NOW + 20 * SECOND)
    assert not loaded
    writer.job(0xA << 60).close("killed", {"t_ns": NOW})
    jobs = jobs_by_id(watch, NOW + 40 * SECOND)
    assert (jobs["a000"].row.state, jobs["b000"].row.state) == ("killed", "exited")
    assert loaded == ["a000000000000000"]


def test_a_removed_or_damaged_job_does_not_affect_others(writer: LocalStoreWriter) -> None:
    for uid in (0xA << 60, 0xB << 60, 0xC << 60):
        store_job(writer, uid, (10, 100))
    watch = Watch(LocalStore(writer.path))
    assert len(jobs_by_id(watch)) == 3
    removed_job = writer.job(0xA << 60)
    writer.forget(removed_job)
    shutil.rmtree(removed_job.folder)
    (writer.job(0xB << 60).folder / "job.json").write_text("{")
    state = watch.update(NOW + SECOND)
    assert [job.row.id for job in state.jobs] == ["c000"]
    assert state.damaged == 1


def test_a_store_that_was_moved_is_an_error(writer: LocalStoreWriter) -> None:
    watch = Watch(LocalStore(writer.path))
    assert watch.update(NOW).jobs == ()
    writer.path.rename(writer.path.with_name("moved"))
    with pytest.raises(StoreError, match="no job was profiled into it yet"):
        watch.update(NOW + SECOND)


def test_a_job_without_a_collector_is_stale(writer: LocalStoreWriter) -> None:
    store_job(writer, 0xA << 60, (10, 100))
    watch = Watch(LocalStore(writer.path))
    writer.close()
    assert jobs_by_id(watch)["a000"].row.state == "stale"


def test_a_host_is_shown_while_it_sends_samples(writer: LocalStoreWriter) -> None:
    samples = [
        {"t_ns": NOW + (n - 5) * SECOND, "cpus": 8, "cpu_busy_s": 3.0 * n, "load_1m": 2.5, "memory_total_bytes": 10**10}
        for n in range(6)
    ]
    writer.host(HOST).append({"host_samples": rows("host_samples", samples)})
    watch = Watch(LocalStore(writer.path))
    (host,) = watch.update(NOW).hosts
    assert (host.name, host.cpus, host.cpu_cores, host.load_1m) == (HOST, 8, 3.0, 2.5)
    assert watch.update(NOW + 60 * SECOND).hosts == ()


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_sorts_all_jobs_and_puts_ended_ones_last(writer: LocalStoreWriter, order: str) -> None:
    store_job(writer, 0xA << 60, (10, 100))
    store_job(writer, 0xB << 60)
    job = writer.job(0xC << 60)
    job.set_identity({**IDENTITY, "host": HOST})
    job.close("exited", {"t_ns": NOW})
    jobs = all_jobs(writer)
    for backwards in (False, True):
        assert [job.row.id for job in sorted_jobs(jobs, order, backwards=backwards)][-1] == "c000"


def all_jobs(writer: LocalStoreWriter) -> list[WatchedJob]:
    return list(Watch(LocalStore(writer.path)).update(NOW).jobs)


def test_jobs_are_found_by_name_user_host_id_and_state(writer: LocalStoreWriter) -> None:
    store_job(writer, 0xA << 60, (10, 100), name="bert_large.py")
    store_job(writer, 0xB << 60, name="mnist.py")
    jobs = all_jobs(writer)
    for text, ids in {"BERT": "a", "b*ge": "a", "ada": "ab", "starting": "b", "b000": "b", "": "ab", "x": ""}.items():
        assert "".join(job.row.id[0] for job in filtered_jobs(jobs, text)) == ids, text
    odd_job = replace(jobs[0], row=replace(jobs[0].row, name="[x]"))
    assert filtered_jobs([odd_job], "[") == [odd_job]
