"""tfprof reads files of release 0.2.0 (make_old_samples.py): a channel of version 1, two stores.

Tests formats/old_records.py, agent/old_channels.py.
"""

import contextlib
import fcntl
import gzip
import json
import os
import shutil
from functools import partial
from pathlib import Path
from statistics import median

import pytest
from contract.make_old_samples import op_rows
from fakes import random_rows
from pyarrow import parquet
from tfprof.agent import old_channels
from tfprof.agent.channels import ChannelReader
from tfprof.collector.alerts.alert import STALL, Alert
from tfprof.collector.errors import StoreError, VersionError
from tfprof.collector.ingest.parsing import alert_rows, profiled_step
from tfprof.collector.records import Record, cut_records
from tfprof.collector.store import sql_queries, wal
from tfprof.collector.store import writer as writer_module
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.store.schema import ROLLUP, STORE_VERSION
from tfprof.collector.store.writer import LocalStoreWriter
from tfprof.formats import layout
from tfprof.formats.version import CHANNEL_VERSION

DATA = Path(__file__).parent / "data"


def _memfd(data: bytes) -> int:
    fd = os.memfd_create(layout.MEMFD_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.pwrite(fd, data, 0)
    return fd


@pytest.fixture
def channel_bytes() -> bytes:
    return gzip.decompress((DATA / "channel_1.gz").read_bytes())


def _records(channel: ChannelReader) -> list[Record]:
    ring_slice = channel.records.read(0, 1 << 20)
    assert ring_slice is not None
    assert ring_slice.end == channel.word("head")
    return cut_records(memoryview(ring_slice.data), ring_slice.first, ring_slice.last)


def test_a_channel_of_version_1_is_drained(channel_bytes: bytes) -> None:
    assert channel_bytes[8] == 1
    channel = ChannelReader(fd := _memfd(channel_bytes))
    try:
        assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
        assert (channel.identity.uid, channel.identity.launch) == (0x20, 7)
        assert channel.hello()["name"] == "old.py"
        refused, metadata, one_step, several_steps = _records(channel)
        assert (refused.kind, json.loads(bytes(refused.body))["slug"]) == (layout.REFUSED, "no-frames")
        assert (metadata.kind, metadata.flags, metadata.step, metadata.key) == (layout.RUN_METADATA, layout.RUN, 3, 77)
        assert bytes(metadata.body) == b"metadata"
        step, began_ns, _, session = profiled_step(one_step)
        assert (step.kind, step.ordinal, step.key, step.start_ns) == (layout.BATCH, 4, 0, 4000)
        assert layout.XSPACE_HEAD.unpack_from(one_step.body)[1] == 1
        assert (step.duration_ns, began_ns, bytes(session)) == (600, 4000, b"one step")
        assert (several_steps.kind, several_steps.seq) == (layout.REFUSED, 4)
        assert json.loads(bytes(several_steps.body))["slug"] == "old-session"
        spans = channel.spans.read(0, 10, ended=True)
        assert spans is not None
        assert [row[2] for row in layout.SPAN.iter_unpack(spans.data)] == [1, 2]
        channel.records.release(channel.word("head"))
        assert channel.records.unread(channel.records.tail) == 0
    finally:
        channel.close()


def test_counters_that_version_1_lacks_are_absent(channel_bytes: bytes) -> None:
    channel = ChannelReader(_memfd(channel_bytes))
    counters = channel.counters()
    channel.close()
    assert (counters["traced"], counters["dropped_spans"], counters["counts"]["run"]) == (5, 1, 2)
    assert not {"missed", "ring_error", "times", "failed"} & counters.keys()


def test_an_old_record_above_the_present_size_limit_becomes_a_refusal() -> None:
    header = layout.RECORD.pack(layout.RECORD_MAX + 1, layout.GRAPH, 0, 9, 0, 0, 0, 0, 0, 0)
    adapter = old_channels.adapter_of(1)
    assert adapter is not None
    (refusal,) = cut_records(memoryview(adapter.too_large_record(header)), 9, 9)
    assert json.loads(bytes(refusal.body))["slug"] == "record-too-large"


@pytest.mark.parametrize("version", [2, CHANNEL_VERSION + 1, 99])
def test_an_unknown_version_is_refused_with_both_versions_in_the_message(channel_bytes: bytes, version: int) -> None:
    data = channel_bytes[:8] + version.to_bytes(4, "little") + channel_bytes[12:]
    with pytest.raises(VersionError, match=rf"version {version} .*speaks {CHANNEL_VERSION}"):
        ChannelReader(_memfd(data))


def test_adapters_convert_other_versions_to_the_current_one() -> None:
    assert {version for _, version in old_channels.ADAPTERS} == {CHANNEL_VERSION}
    assert old_channels.adapter_of(CHANNEL_VERSION) is None


def test_a_store_of_the_last_release_is_read(tmp_path: Path) -> None:
    shutil.unpack_archive(DATA / "store_0.2.0.tar.gz", tmp_path)
    store = LocalStore(str(tmp_path / "store"))
    jobs = store.jobs()
    assert not store.read()[1]
    assert [(job.info.uid, job.info.name) for job in sorted(jobs, key=lambda job: job.info.uid)] == [
        (0x21, "train.py"),
        (0x22, "train.py"),
    ]
    for job in jobs:
        assert job.table("spans")["ordinal"].to_pylist() == [1, 2, 3]
    assert all(job.table("alerts").num_rows == 0 for job in jobs)


def test_writing_to_a_store_of_the_last_release_upgrades_its_version(tmp_path: Path) -> None:
    shutil.unpack_archive(DATA / "store_0.2.0.tar.gz", tmp_path)
    path = tmp_path / "store"
    writer = LocalStoreWriter(path, "host")
    job_writer = writer.job(0x21)
    job_writer.append({"alerts": alert_rows([Alert(1, 1, STALL)])})
    job_writer.close("ended")
    writer.close()
    assert json.loads((path / "store.json").read_text())["version"] == STORE_VERSION
    store = LocalStore(str(path))
    assert not store.read()[1]
    assert [len(job.table("alerts")) for job in sorted(store.jobs(), key=lambda job: job.info.uid)] == [1, 0]
    assert store.job("21".rjust(16, "0")).table("spans")["ordinal"].to_pylist() == [1, 2, 3]


SEALED_UID, LOGGED_UID = f"{0x23:016x}", f"{0x24:016x}"
BASES_NS = {trace: random_rows.BASE_NS + trace % 4 for trace in range(12)}


@pytest.fixture
def traced_store(tmp_path: Path) -> Path:
    """A store of 0.2.0: a job with traces in two sealed generations, and one with a log."""
    shutil.unpack_archive(DATA / "traced_store_0.2.0.tar.gz", tmp_path)
    return tmp_path / "store"


def _append(path: Path, uid: str, first: int) -> list[dict[str, int]]:
    """Append four traces, numbered from ``first``, to a job; seal them and return their ops."""
    rows = op_rows(first)
    with contextlib.closing(LocalStoreWriter(path, "host")) as writer:
        job = writer.job(int(uid, 16))
        job.append({"ops": random_rows.table("ops", rows), "traces": random_rows.traces(first, 4)})
        job.close("ended")
    return rows


def test_rollups_of_the_last_release_are_read_and_merged(traced_store: Path) -> None:
    """Rollups of the last release have more columns than those of this version."""
    (total,) = traced_store.glob(f"jobs/{SEALED_UID}/total-*.parquet")
    assert "histogram" in parquet.read_schema(total).names
    rows = [*op_rows(0), *op_rows(4)]
    job = LocalStore(str(traced_store)).job(SEALED_UID)
    assert job.rollup().to_pylist() == random_rows.plain_rollup(rows, BASES_NS)
    for traces in (range(4), range(2, 7)):
        rows_of_traces = [row for row in rows if row["trace"] in traces]
        assert job.rollup(traces).to_pylist() == random_rows.plain_rollup(rows_of_traces, BASES_NS, before=rows)
    _assert_times(job, rows, range(2, 7))
    rows += _append(traced_store, SEALED_UID, 8)
    (total,) = traced_store.glob(f"jobs/{SEALED_UID}/total-*.parquet")
    assert parquet.read_schema(total).names == ROLLUP.names
    job = LocalStore(str(traced_store)).job(SEALED_UID)
    assert job.rollup().to_pylist() == random_rows.plain_rollup(rows, BASES_NS)
    _assert_times(job, rows, range(5, 10))


def _assert_times(job: LocalJob, rows: list[dict[str, int]], some_traces: range) -> None:
    """Step times are read although the last release stored no histograms of them."""
    for traces in (None, some_traces):
        selected_rows = [row for row in rows if traces is None or row["trace"] in traces]
        times = random_rows.plain_times(selected_rows, BASES_NS).items()
        expected = {unit: len(by_trace) * median(by_trace.values()) for unit, by_trace in times}
        assert random_rows.unit_times(job.unit_times(job.rollup(traces), traces)) == pytest.approx(expected, rel=0.016)


def test_a_log_of_the_last_release_is_read_and_sealed_before_more_is_appended(traced_store: Path) -> None:
    """Rows of `ops` in such a log have more columns than those of this version."""
    job = LocalStore(str(traced_store)).job(LOGGED_UID)
    rows = op_rows(0)
    assert job.table("ops").equals(random_rows.table("ops", rows))
    assert job.rollup().to_pylist() == random_rows.plain_rollup(rows, BASES_NS)
    rows += _append(traced_store, LOGGED_UID, 4)
    job = LocalStore(str(traced_store)).job(LOGGED_UID)
    assert (job.info.sealed, job.table("traces")["trace"].to_pylist()) == (1, [*range(8)])
    assert job.rollup().to_pylist() == random_rows.plain_rollup(rows, BASES_NS)


def test_if_a_log_of_the_last_release_cannot_be_sealed_nothing_changes_until_a_retry(
    traced_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("the disk is full", "store-full")

    with monkeypatch.context() as patch:
        patch.setattr(writer_module, "seal", fail)
        with pytest.raises(StoreError, match="store-full"):
            _append(traced_store, LOGGED_UID, 4)
    assert LocalStore(str(traced_store)).job(LOGGED_UID).rollup().to_pylist() == random_rows.plain_rollup(
        op_rows(0), BASES_NS
    )
    rows = op_rows(0) + _append(traced_store, LOGGED_UID, 4)
    assert LocalStore(str(traced_store)).job(LOGGED_UID).rollup().to_pylist() == random_rows.plain_rollup(
        rows, BASES_NS
    )


def test_an_empty_log_of_the_last_release_is_replaced(traced_store: Path) -> None:
    (log,) = traced_store.glob(f"jobs/{LOGGED_UID}/wal-*.log")
    log.write_bytes(log.read_bytes()[: wal.HEADER.size])
    rows = _append(traced_store, LOGGED_UID, 0)
    job = LocalStore(str(traced_store)).job(LOGGED_UID)
    assert (job.info.sealed, job.table("ops").num_rows) == (0, len(rows))


def test_sql_reads_segments_of_both_releases_together(traced_store: Path) -> None:
    _append(traced_store, SEALED_UID, 8)
    job = LocalStore(str(traced_store)).job(SEALED_UID)
    assert sorted(job.with_sql(sql_queries.memory_left)) == [(trace, -45, 0) for trace in range(12)]
    assert job.with_sql(partial(sql_queries.new_nodes, left_out=[])) == {0: 10}


def test_a_log_of_the_last_release_is_read_from_a_position_on(traced_store: Path) -> None:
    (path,) = traced_store.glob(f"jobs/{LOGGED_UID}/wal-*.log")
    contents = wal.read_after(wal.Contents(path, [], wal.HEADER.size, version=1))
    assert contents.table("ops").equals(random_rows.table("ops", op_rows(0)))
