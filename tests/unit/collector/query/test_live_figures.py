"""`tfprof top` shows the same with the figures that the collector writes as with the rows."""

import json
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from fakes.wire_agent import span
from tfprof.collector.decoders.decode import decoder
from tfprof.collector.ingest.ingest import make_ingest
from tfprof.collector.query.watching import Watch, WatchedStore
from tfprof.collector.store import schema
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.row_follower import RowFollower
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.collector.summaries.kinds import step_kind_of
from tfprof.collector.summaries.live import LiveJob, figures_of
from tfprof.formats import layout, runtime_dir, wire
from tfprof.formats.wire import Head

SECOND = 10**9
HOST = socket.gethostname()
STEPS = 200
NAMES = {1: "long", 2: "slower", 3: "fresh", 4: "functions"}


class Collector:
    """A collector without sockets. Its jobs have run for STEPS seconds."""

    def __init__(self, store: Path) -> None:
        self.now_ns = time.time_ns()
        self.store = LocalStoreWriter(store, HOST)
        self.ingest = make_ingest(self.store, decoder(), lambda _uid, error: pytest.fail(str(error)))
        self.jobs = self.ingest.jobs
        self.file = Path(runtime_dir.make_instance(str(store))) / runtime_dir.LIVE

    def take(self, kind: int, uid: int, number: int, body: bytes) -> None:
        first = number if kind == wire.SPANS else 0
        self.jobs.take(Head(kind, uid, 0, first, number), memoryview(body))

    def open(self, uid: int) -> None:
        self.take(wire.OPEN, uid, 1, json.dumps({"name": NAMES[uid], "host": HOST}).encode())

    def step(self, uid: int, number: int, age_s: float) -> None:
        """Store a step that began ``age_s`` ago."""
        total_ns = 900_000_000 if uid == 2 and age_s < 12 else 20_000_000
        kind, key = (layout.FUNCTION, number % 3) if uid == 4 else (layout.RUN, 0)
        flags = layout.FLAG_TRACED if number % 7 == 0 else 0
        entry = span(number, start_ns=0, total_ns=total_ns, kind=kind, key=key, flags=flags)
        times = struct.pack("<QQ", 0, self.now_ns - int(age_s * SECOND))
        self.take(wire.SPANS, uid, number, times + layout.SPAN.pack(*entry))

    def sample(self, number: int, age_s: float, uids: list[int]) -> None:
        usage = {"cpu_user_s": 0.7 * number, "rss_bytes": 5 << 30, "read_bytes": 1000 * number, "processes": 1}
        host = {"cpus": 8, "cpu_busy_s": 2.0 * number, "memory_total_bytes": 1 << 36, "memory_available_bytes": 1 << 35}
        values = {"t_ns": self.now_ns - int(age_s * SECOND), "host": host, "jobs": {f"{uid:x}": usage for uid in uids}}
        self.ingest.samples.take(
            HOST, Head(wire.SAMPLES, 0, 0, number, number), memoryview(json.dumps(values).encode())
        )

    def run(self) -> None:
        for uid in NAMES:
            self.open(uid)
            steps = 2 if uid == 3 else STEPS
            for number in range(1, steps + 1):
                self.step(uid, number, steps - number + 1)
        for number in range(1, 8):
            self.sample(number, 8 - number, list(NAMES))
        counters = {"counts": {"run": STEPS}, "times": {"run": STEPS * 20_000_000}, "traced": 3}
        self.take(wire.COUNTERS, 1, 1, json.dumps(counters).encode())
        self.ingest.upkeep.hand_over_counters(9)
        self.store.job(1).release()

    def write(self) -> None:
        self.ingest.upkeep.write_live(str(self.file), time.monotonic())


@pytest.fixture
def collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    collector = Collector(tmp_path / "store")
    yield collector
    collector.store.close()


def by_rows(collector: Collector) -> WatchedStore:
    """Return the jobs as read from the rows: they are read if somebody takes them."""
    return Watch(LocalStore(collector.store.path), taker=lambda _uid: lambda _rows: None).update(collector.now_ns)


def no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowFollower, "new_rows", lambda follower: pytest.fail(f"rows of {follower.folder} are read"))


def test_all_figures_are_those_of_the_rows(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    collector.run()
    collector.write()
    expected = by_rows(collector)
    assert [(job.row.name, job.row.steps, job.is_slow) for job in expected.jobs] == [
        ("long", STEPS, False),
        ("slower", STEPS, True),
        ("fresh", 2, False),
        ("functions", STEPS, False),
    ]
    no_rows(monkeypatch)
    assert Watch(LocalStore(collector.store.path)).update(collector.now_ns) == expected


def test_the_devices_of_traced_ops_are_shown_whatever_their_names_are() -> None:
    job = LiveJob()
    names = [b"/job:\xff\x1b/device:GPU:1", b"/device:CPU:0", b"/gpu:0", b"/device:TPU:0", b"GPU:7"]
    rows = [{"kind": schema.DEVICE, "id": number, "text": name} for number, name in enumerate(names)]
    job.add_names(pa.Table.from_pylist(rows[1:2], schema=schema.NAMES))
    assert job.devices == ("CPU:0",)
    job.add_names(pa.Table.from_pylist(rows, schema=schema.NAMES))
    assert figures_of(json.loads(json.dumps(job.figures().document()))).devices == ("GPU:0", "GPU:1")


def test_of_many_functions_those_with_the_most_time_are_kept() -> None:
    job = LiveJob()
    job.add_spans((layout.FUNCTION, key, key, key * SECOND, SECOND // 100, 1, 0) for key in range(1, 100))
    job.add_spans([(layout.FUNCTION, 100, 100, 100 * SECOND, SECOND, 1, 0)])
    main = job.figures().main("function")
    assert main is not None
    assert (main.kind, main.pace.step_ns) == (step_kind_of(layout.FUNCTION, 100), SECOND)


def test_old_figures_and_those_of_another_collector_are_not_used(collector: Collector) -> None:
    collector.run()
    collector.write()
    expected = by_rows(collector)
    written = json.loads(collector.file.read_text())
    for forged in (
        {**written, "collector": "another"},
        {**written, "written_ns": written["written_ns"] - 60 * SECOND},
        {**written, "written_ns": written["written_ns"] + 60 * SECOND},
        {**written, "jobs": {"1": []}},
        {**written, "hosts": 1},
        {},
    ):
        watch = Watch(LocalStore(collector.store.path))
        collector.file.write_text(json.dumps(forged))
        assert watch.update(collector.now_ns) == expected
    collector.file.unlink()
    collector.file.mkdir()
    assert Watch(LocalStore(collector.store.path)).update(collector.now_ns) == expected


def test_jobs_that_a_collector_finds_stored_are_read_from_their_rows(collector: Collector, tmp_path: Path) -> None:
    collector.run()
    collector.write()
    collector.store.close()
    again = Collector(tmp_path / "store")
    for uid in NAMES:
        again.open(uid)
    again.write()
    assert json.loads(again.file.read_text())["jobs"] == {}
    watched = Watch(LocalStore(again.store.path)).update(collector.now_ns)
    assert [job.pace for job in watched.jobs] == [job.pace for job in by_rows(collector).jobs]
    again.store.close()


def test_an_end_is_shown_at_once(collector: Collector) -> None:
    collector.run()
    collector.write()
    watch = Watch(LocalStore(collector.store.path))
    watch.update(collector.now_ns)
    collector.store.job(2).close("exited", {"t_ns": collector.now_ns})
    assert [job.row.state for job in watch.update(collector.now_ns).jobs] == ["running", "running", "running", "exited"]


def test_a_running_job_whose_file_is_gone_hides_no_other(collector: Collector) -> None:
    collector.run()
    collector.write()
    watch = Watch(LocalStore(collector.store.path))
    watch.update(collector.now_ns)
    (collector.store.job(1).folder / "job.json").unlink()
    assert len(watch.update(collector.now_ns).jobs) == len(NAMES) - 1
