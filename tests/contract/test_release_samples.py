"""tfprof reads what release 0.3.0 wrote (make_release_samples.py): a channel and a store."""

import contextlib
import fcntl
import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
from contract.stored_sums import stored_sums
from fakes.profiles import profile
from tfprof.agent.channels import ChannelReader
from tfprof.collector.records import cut_records
from tfprof.collector.store.archive_import import import_archive
from tfprof.collector.store.reader import LocalStore
from tfprof.formats import layout

DATA = Path(__file__).parent / "data"
RELEASE = "0.3.0"


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    shutil.unpack_archive(DATA / f"store_{RELEASE}.tar.gz", tmp_path)
    return LocalStore(str(tmp_path / "store"))


def open_sample(name: str) -> contextlib.closing[ChannelReader]:
    """Return a reader of the sample of a channel in the file ``name``."""
    fd = os.memfd_create(layout.MEMFD_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.pwrite(fd, gzip.decompress((DATA / name).read_bytes()), 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return contextlib.closing(ChannelReader(fd))


def test_a_channel_of_the_release_is_read() -> None:
    with open_sample("channel_3.gz") as channel:
        check(channel)
        assert channel.counters()["counts"]["run"] == 2


def test_the_kinds_that_a_channel_declares_name_its_counters() -> None:
    with open_sample("channel_3_kinds.gz") as channel:
        check(channel)
        counters = channel.counters()
        assert counters["counts"] == {"forward": 2, "train_step": 1, "warm_up": 0}
        assert counters["times"] == {"forward": 1000, "train_step": 0, "warm_up": 0}
        assert channel.kinds()[2] == ("train_step", "step", 10)


def check(channel: ChannelReader) -> None:
    """Check what make_release_samples.channel has written."""
    assert (channel.identity.uid, channel.identity.launch) == (0x30, 7)
    assert channel.hello()["name"] == "old.py"
    records, spans = channel.records.read(0, 1 << 20), channel.spans.read(0, 10, ended=True)
    assert records is not None
    assert spans is not None
    refused, metadata, session = cut_records(memoryview(records.data), records.first, records.last)
    assert json.loads(bytes(refused.body))["slug"] == "no-frames"
    assert (metadata.kind, metadata.step, metadata.key, bytes(metadata.body)) == (
        layout.RUN_METADATA,
        3,
        77,
        b"metadata",
    )
    assert (session.kind, session.step, bytes(session.body)) == (layout.XSPACE, 4, b"one step")
    assert [row[2:4] for row in layout.SPAN.iter_unpack(spans.data)] == [(1, 2), (1, 1)]


def test_all_tables_of_a_store_of_the_release_are_read(store: LocalStore) -> None:
    expected = json.loads((DATA / f"store_{RELEASE}.json").read_text())
    assert not store.read()[1]
    for job, sums in zip(store.jobs(), expected, strict=True):
        found = stored_sums(job)
        assert found["name"] == sums["name"]
        for name, columns in sums["tables"].items():
            assert {column: found["tables"][name][column] for column in columns} == columns, name
        result = profile(job)
        assert result is not None
        assert sum(node.stats.micros for node in result.nodes) > 0


def test_a_job_of_the_release_goes_to_another_store_whole(store: LocalStore, tmp_path: Path) -> None:
    for job in store.jobs():
        (tmp_path / "job.tfprof").write_bytes(b"".join(job.archive()))
        import_archive(tmp_path / "copy", str(tmp_path / "job.tfprof"), "here")
    for job, copied in zip(store.jobs(), LocalStore(str(tmp_path / "copy")).jobs(), strict=True):
        assert stored_sums(copied) == stored_sums(job)
