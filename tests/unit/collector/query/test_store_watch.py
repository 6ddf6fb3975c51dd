"""A watch by the protocol of a store shows what the watch of its folder shows."""

import socket
from typing import Any

import pyarrow as pa
import pytest
from fakes.made_store import IDENTITY, SECOND, START_NS, rows, span
from tfprof.collector.errors import StoreError
from tfprof.collector.query.followed import rows_since
from tfprof.collector.query.metrics import MetricsReader
from tfprof.collector.query.store_watch import StoreWatch, open_watch
from tfprof.collector.query.watching import Watch, recent
from tfprof.collector.store import schema
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalJobWriter, LocalStoreWriter
from tfprof.formats import layout

HOST = socket.gethostname()
NOW = START_NS + 300 * SECOND


def add_steps(job: LocalJobWriter, first: int, number: int, ms: float) -> None:
    """Store ``number`` steps of ``ms`` and a sample a second, up to START_NS + 300 s."""
    steps = [span(layout.BATCH, first + n, 300_000 - (number - n) * ms, ms) for n in range(number)]
    samples = [{"t_ns": NOW - n * SECOND, "cpu_user_s": 30.0 - n, "rss_bytes": 10**9} for n in range(9, -1, -1)]
    job.append({"spans": rows("spans", steps), "samples": rows("samples", samples)})


def test_running_and_ended_jobs_and_their_hosts_are_those_of_the_folder(writer: LocalStoreWriter) -> None:
    host = [{"t_ns": NOW - n * SECOND, "cpus": 8, "cpu_busy_s": 40.0 - n} for n in range(9, -1, -1)]
    writer.host(HOST).append({"host_samples": rows("host_samples", host)})
    writer.job(0xA << 60).append({"host_samples": rows("host_samples", host)})  # as in a copy of the job
    for uid in (0xA << 60, 0xB << 60):
        job = writer.job(uid)
        job.set_identity({**IDENTITY, "host": HOST})
        add_steps(job, 0, 100, 20)
    job.close("exited", {"t_ns": NOW, "status": 0})
    store = LocalStore(writer.path)
    watch, folder_watch = StoreWatch(store), Watch(store)
    first = watch.update(NOW)
    assert first == folder_watch.update(NOW)
    assert [host.cpu_cores for host in first.hosts] == [1.0]
    running = writer.job(0xA << 60)
    add_steps(running, 100, 50, 60)
    device = {"kind": schema.DEVICE, "id": 0, "text": b"/device:GPU:0"}
    found_ns = {"found_ns": NOW, "slug": "slower"}
    running.append({"names": rows("names", [device]), "alerts": rows("alerts", [found_ns])})
    assert watch.update(NOW + 4 * SECOND).jobs == first.jobs, "it reads again after five seconds"
    later = NOW + 5 * SECOND
    second = watch.update(later)
    assert second == folder_watch.update(later)
    assert second.jobs[0].pace != first.jobs[0].pace
    assert second.jobs[0].alert == "slower"
    assert watch.reader(second.jobs[0].info).table("spans").num_rows == 150
    assert len(recent(watch.update(later + 700 * SECOND)).jobs) == 1, "the other has ended long ago"
    assert isinstance(open_watch(store), Watch)


def test_metrics_of_a_store_that_is_no_folder_are_the_same(
    writer: LocalStoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = writer.job(1)
    job.set_identity({**IDENTITY, "host": HOST})
    add_steps(job, 0, 100, 20)
    expected = MetricsReader(str(writer.path), SECOND).update(NOW)

    class OtherStore(LocalStore):
        pass

    monkeypatch.setattr("tfprof.collector.query.store_watch.LocalStore", OtherStore)
    reader = MetricsReader(str(writer.path), 10 * SECOND, LocalStore)
    assert reader.update(NOW) == expected
    assert isinstance(reader._watch, StoreWatch)
    add_steps(job, 100, 50, 20)
    job.close("exited", {"t_ns": NOW, "status": 0})
    (ended,) = reader.update(NOW + 5 * SECOND).jobs
    assert (ended.row.phase, sum(ended.times["batch"].counts)) == ("ended", 150)


def test_no_row_is_lost_if_a_table_cannot_be_read() -> None:
    class Job:
        errors = 1

        def pieces(self, name: str, start: int) -> list[pa.Table]:
            if name == "samples" and self.errors:
                self.errors -= 1
                raise StoreError("no answer")
            return [rows(name, [{}] * 5).slice(start)]

    job: Any = Job()
    counts = {"spans": 0, "samples": 2}
    with pytest.raises(StoreError):
        rows_since(job, counts)
    assert {name: table.num_rows for name, table in rows_since(job, counts).items()} == {"spans": 5, "samples": 3}
    assert rows_since(job, counts) == {}
