"""A job as one file: the copy has every row, and a file that is not whole is refused."""

import io
import json
import os
import shutil
import stat
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes import ended_jobs, random_rows
from fakes.made_store import HOST, SECOND, START_NS, rows, write_host, write_job
from fakes.many_executions import write_many_executions
from tfprof.collector.errors import TfprofError
from tfprof.collector.store import catalog
from tfprof.collector.store.archive import MANIFEST
from tfprof.collector.store.archive_import import import_archive
from tfprof.collector.store.reader import LocalJob, LocalStore
from tfprof.collector.store.schema import JOB_TABLES
from tfprof.collector.store.writer import LocalStoreWriter

DATA = Path(__file__).parents[3] / "contract" / "data"
UID = 7


def exported(job: LocalJob, path: Path) -> Path:
    """Write the archive of ``job`` to ``path`` and return the path."""
    path.write_bytes(b"".join(job.archive()))
    return path


def table(job: LocalJob, name: str) -> pa.Table:
    """Return a table; rows of ops, whose order changes when they are sealed, are sorted."""
    rows = job.host_samples() if name == "host_samples" else job.table(name)
    return rows.sort_by([(column, "ascending") for column in rows.column_names]) if name == "ops" else rows


def assert_same_rows(copy: LocalJob, job: LocalJob) -> None:
    for name in JOB_TABLES:
        assert table(copy, name).equals(table(job, name)), name
    assert copy.rollup().equals(job.rollup())
    assert copy.unit_times(copy.rollup()).equals(job.unit_times(job.rollup()))
    assert copy.tags() == job.tags()
    assert copy.info.identity == job.info.identity
    assert copy.info.counters == job.info.counters
    assert copy.info.end.items() >= job.info.end.items()


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """A store with a job of several generations: traces, tags, unsealed rows."""
    path = tmp_path / "store"
    with closing(LocalStoreWriter(path, HOST)) as writer:
        job = writer.job(UID)
        job.set_identity({"name": "train.py", "host": HOST, "created_real_ns": START_NS})
        job.append({"names": random_rows.device_names()})
        for first in (0, 10, 20):
            ops = random_rows.random_ops(first, 10, 6, seed=first)
            names = rows("names", [{"kind": 0, "id": first + at, "text": b"n%d" % (first + at)} for at in range(3)])
            job.append({"ops": rows("ops", ops), "traces": random_rows.traces(first, 10), "names": names}, 3, first + 1)
            if first < 20:
                job.seal()
        job.set_counters({"traced": 30})
    catalog.change_tags(catalog.job_folder(path, UID), lambda _: ("mine", "größer"))
    write_host(path, [{"t_ns": START_NS + n * SECOND, "cpus": 8, "cpu_busy_s": 3.0 * n} for n in range(40)])
    return LocalStore(path, HOST)


@pytest.fixture
def archive(store: LocalStore, tmp_path: Path) -> Path:
    return exported(store.jobs()[0], tmp_path / "job.tfprof")


def test_every_table_comes_back_row_for_row(store: LocalStore, archive: Path, tmp_path: Path) -> None:
    (job,) = store.jobs()
    assert job.table("ops").num_rows > 100
    assert (job.info.sealed, job.host_samples().num_rows) == (1, 40)
    imported = import_archive(tmp_path / "other", str(archive), "elsewhere")
    assert (imported.info.uid, imported.nodes, imported.steps) == (UID, 0, 30)
    (copy,) = LocalStore(tmp_path / "other", "elsewhere").jobs()
    assert_same_rows(copy, job)
    assert (copy.info.state, "t_ns" in copy.info.end) == (catalog.LOST, True)
    assert copy.info.acked == {3: 21}
    assert [path.name for path in (tmp_path / "other" / "jobs").iterdir()] == [f"{UID:016x}"]
    assert not list((tmp_path / "other" / "hosts").iterdir())


@pytest.mark.parametrize(
    ("identity", "end", "samples"),
    [
        ({"created_real_ns": (1 << 64) - 1}, {}, 0),
        ({"created_real_ns": -(1 << 63) - 5}, {"t_ns": 1 << 64}, 40),
    ],
)
def test_a_job_of_impossible_times_can_be_exported(
    identity: dict[str, int], end: dict[str, int], samples: int, store: LocalStore, tmp_path: Path
) -> None:
    write_job(store.path, 8, {}, identity=identity, end=end)
    archive = exported(store.job(f"{8:016x}"), tmp_path / "job.tfprof")
    imported = import_archive(tmp_path / "other", str(archive), "elsewhere")
    assert LocalStore(tmp_path / "other").job(imported.info.hex).host_samples().num_rows == samples


def test_samples_from_before_the_job_are_not_those_of_its_host(store: LocalStore) -> None:
    earlier_ns = [START_NS - seconds * SECOND for seconds in (444, 60, 1)]
    write_host(store.path, [{"t_ns": t_ns, "cpus": 8} for t_ns in earlier_ns])
    assert store.jobs()[0].host_samples()["t_ns"].to_pylist()[40:] == earlier_ns[1:]


def test_a_copy_of_a_copy_is_the_same(archive: Path, store: LocalStore, tmp_path: Path) -> None:
    import_archive(tmp_path / "other", str(archive), HOST)
    again = exported(LocalStore(tmp_path / "other", HOST).jobs()[0], tmp_path / "again.tfprof")
    import_archive(tmp_path / "third", str(again), HOST)
    assert_same_rows(LocalStore(tmp_path / "third").jobs()[0], store.jobs()[0])


def test_a_running_job_can_be_copied_while_it_is_written(store: LocalStore, tmp_path: Path) -> None:
    with closing(LocalStoreWriter(store.path, HOST)) as writer:
        writer.job(UID)
        (job,) = store.jobs()
        assert job.info.state == catalog.RUNNING
        pieces = job.archive()
        first = next(pieces)
        expected = {name: table(job, name) for name in JOB_TABLES}
        writer.job(UID).append({"traces": random_rows.traces(30, 5)})
        writer.job(UID).seal()  # removes and merges files that were not copied yet
        (tmp_path / "a.tfprof").write_bytes(first + b"".join(pieces))
    import_archive(tmp_path / "other", str(tmp_path / "a.tfprof"), HOST)
    (copy,) = LocalStore(tmp_path / "other", HOST).jobs()
    assert copy.info.state == "detached"
    for name in JOB_TABLES:
        assert table(copy, name).equals(expected[name]), name


@pytest.mark.parametrize("name", ["store_0.2.0", "traced_store_0.2.0"])
def test_jobs_that_the_last_release_stored_are_copied(name: str, tmp_path: Path) -> None:
    shutil.unpack_archive(DATA / f"{name}.tar.gz", tmp_path)
    jobs = LocalStore(tmp_path / "store").jobs()
    assert jobs
    for job in jobs:
        import_archive(tmp_path / "other", str(exported(job, tmp_path / "a.tfprof")), HOST)
        assert_same_rows(LocalStore(tmp_path / "other").job(job.info.hex), job)


def test_jobs_of_every_kind_are_copied(tmp_path: Path) -> None:
    ended_jobs.write(tmp_path / "store")
    write_many_executions(tmp_path / "store", 3)
    for job in LocalStore(tmp_path / "store").jobs():
        import_archive(tmp_path / "other", str(exported(job, tmp_path / "a.tfprof")), HOST)
        copy = LocalStore(tmp_path / "other").job(job.info.hex)
        assert_same_rows(copy, job)
        assert (copy.info.state, copy.info.end) == (job.info.state, job.info.end)


def test_a_job_that_the_store_has_is_not_replaced(store: LocalStore, archive: Path) -> None:
    with pytest.raises(TfprofError, match="is in the store already") as caught:
        import_archive(store.path, str(archive), HOST)
    assert caught.value.slug == "job-exists"
    assert [path.name for path in (store.path / "jobs").iterdir()] == [f"{UID:016x}"]


def refusal(path: Path | str, store: Path) -> tuple[str, str]:
    """Return slug and message of the refused import; the store gets no job, and no remains."""
    with pytest.raises(TfprofError) as caught:
        import_archive(store, str(path), HOST)
    assert not (store / "jobs").exists() or not list((store / "jobs").iterdir())
    assert "\n" not in str(caught.value)
    return caught.value.slug, caught.value.args[0]


def changed(archive: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Return an archive in which the files with these names are changed."""
    with zipfile.ZipFile(archive) as old:
        files = {name: old.read(name) for name in old.namelist()}
    change(files)
    path = archive.with_name("changed.tfprof")
    with zipfile.ZipFile(path, "w") as new:
        for name, data in files.items():
            new.writestr(name, data)
    return path


def with_entries(archive: Path, name: str, **entries: object) -> Path:
    """Return an archive with other values in a JSON file."""

    def change(files: dict[str, bytes]) -> None:
        files[name] = json.dumps({**json.loads(files[name]), **entries}).encode()

    return changed(archive, change)


def test_a_newer_format_is_refused_with_both_versions(archive: Path, tmp_path: Path) -> None:
    slug, text = refusal(with_entries(archive, MANIFEST, version=2), tmp_path / "other")
    assert slug == "file-version"
    assert "version 2 of the format, and this tfprof reads version 1" in text
    slug, text = refusal(with_entries(archive, MANIFEST, store_version=99), tmp_path / "other")
    assert slug == "store-version"
    assert "store version 99, and this tfprof reads versions 2 and 4" in text
    slug, text = refusal(with_entries(archive, catalog.JOB_FILE, version=99), tmp_path / "other")
    assert slug == "store-version"


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99, 0.9999])
def test_a_truncated_file_is_refused(share: float, archive: Path, tmp_path: Path) -> None:
    data = archive.read_bytes()
    archive.write_bytes(data[: int(len(data) * share)])
    assert refusal(archive, tmp_path / "other")[0] == "bad-file"


def test_damage_anywhere_is_refused_or_harmless(store: LocalStore, archive: Path, tmp_path: Path) -> None:
    data = archive.read_bytes()
    refused = 0
    for at in range(0, len(data), len(data) // 60):
        archive.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        slugs = []
        try:
            import_archive(tmp_path / str(at), str(archive), HOST)
        except TfprofError as error:
            slugs = [error.slug]
        if slugs:
            assert set(slugs) < {"bad-file", "file-version", "store-version"}
            assert not list((tmp_path / str(at)).glob("jobs/*"))
            refused += 1
        else:
            assert_same_rows(LocalStore(tmp_path / str(at)).jobs()[0], store.jobs()[0])
    assert refused > 40


@pytest.mark.parametrize(
    "name", ["../evil", "/tmp/evil", "a/b", "jobs", ".", "ops-000000.parquet/../../x", "evil.so", "x" * 5000]
)
def test_a_name_that_is_no_file_of_a_job_is_refused(name: str, archive: Path, tmp_path: Path) -> None:
    path = changed(archive, lambda files: files.update({name: b"evil"}))
    assert refusal(path, tmp_path / "other")[0] == "bad-file"
    assert not list(tmp_path.rglob("evil*"))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFDIR, stat.S_IFBLK])
def test_a_link_or_a_pipe_is_refused(kind: int, archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive, "a") as file:
        entry = zipfile.ZipInfo("frames-000009.parquet")
        entry.external_attr = (kind | 0o777) << 16
        file.writestr(entry, "/etc/passwd")
    assert refusal(archive, tmp_path / "other")[0] == "bad-file"


def test_a_second_file_of_the_same_name_is_refused(archive: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(archive, "a") as file:
        file.writestr("job.json", "{}")
    assert "two files of one name" in refusal(archive, tmp_path / "other")[1]


def test_compressed_files_are_refused(archive: Path, tmp_path: Path) -> None:
    """A file of a few bytes could unpack to any size."""
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("frames-000009.parquet", bytes(1 << 26))
    assert archive.stat().st_size < 1 << 20
    assert "is compressed" in refusal(archive, tmp_path / "other")[1]


def test_files_that_share_their_bytes_are_refused(archive: Path, tmp_path: Path) -> None:
    data = archive.read_bytes()
    start = data.rindex(b"PK\x05\x06")
    count, size, offset = struct.unpack_from("<HII", data, start + 10)
    entries = data[offset : offset + size]
    largest = max(zipfile.ZipFile(archive).infolist(), key=lambda entry: entry.file_size)
    at = entries.index(largest.filename.encode()) - 46
    entry = entries[at : at + 46 + len(largest.filename)]
    head = entry[:28] + struct.pack("<HHH", len("ops-000000.parquet"), 0, 0) + entry[34:46]
    more = b"".join(head + b"ops-%06d.parquet" % number for number in range(900_000, 900_400))
    end = struct.pack("<HHHHIIH", 0, 0, count + 400, count + 400, size + len(more), offset, 0)
    archive.write_bytes(data[: offset + size] + more + b"PK\x05\x06" + end)
    assert "larger than it is" in refusal(archive, tmp_path / "other")[1]


@pytest.mark.parametrize("kind", ["text", "many rows"])
def test_a_table_that_needs_too_much_memory_is_refused(kind: str, archive: Path, tmp_path: Path) -> None:
    """Such a file is small: Parquet stores a repeated value once."""

    def bomb(files: dict[str, bytes]) -> None:
        text = "x" * (1 << 26) if kind == "text" else "x" * 60_000
        count = 64 if kind == "text" else 1 << 16
        columns = {"t_ns": pa.repeat(1, count), "slug": pa.repeat("a", count), "count": pa.repeat(1, count)}
        dictionary = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([text]))
        table = pa.table({**columns, "text": dictionary}).select(["t_ns", "slug", "text", "count"])
        sink = io.BytesIO()
        pq.write_table(table, sink, compression="zstd", store_schema=False)
        files["events-000001.parquet"] = sink.getvalue()
        info = json.loads(files["job.json"])
        info["parts"]["events"], info["rows"]["events"] = [1], count
        files["job.json"] = json.dumps(info).encode()

    path = changed(archive, bomb)
    assert path.stat().st_size < 1 << 20
    assert refusal(path, tmp_path / "other")[0] == "bad-file"


def test_other_rows_than_the_job_file_names_are_refused(archive: Path, tmp_path: Path) -> None:
    slug, text = refusal(changed(archive, lambda files: files.pop("ops-000000.parquet")), tmp_path / "other")
    assert (slug, "the table ops has" in text) == ("bad-file", True)
    slug, text = refusal(changed(archive, lambda files: files.pop("total-000001.parquet")), tmp_path / "other")
    assert (slug, "is missing" in text) == ("bad-file", True)

    def swap(files: dict[str, bytes]) -> None:
        files["ops-000000.parquet"] = files["traces-000001.parquet"]

    assert refusal(changed(archive, swap), tmp_path / "other")[0] == "bad-file"


@pytest.mark.parametrize("state", ["running", "stale"])
def test_a_running_job_is_refused(state: str, archive: Path, tmp_path: Path) -> None:
    """A collector would continue with it."""
    assert refusal(with_entries(archive, "job.json", state=state), tmp_path / "other")[0] == "bad-file"


def test_a_job_file_of_another_job_is_refused(archive: Path, tmp_path: Path) -> None:
    for uid in ("0" * 15 + "8", "../../evil", "x", 7, None):
        assert refusal(with_entries(archive, MANIFEST, job=uid), tmp_path / "other")[0] == "bad-file"


@pytest.mark.parametrize("kind", ["fifo", "folder", "missing", "device", "text", "empty"])
def test_what_is_no_archive_is_refused_without_waiting(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tfprof"
    expected = "bad-file"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "missing":
        expected = "io"
    elif kind == "device":
        path = Path("/dev/zero")
    else:
        path.write_text("PK" * 500 if kind == "text" else "")
    assert refusal(path, tmp_path / "other")[0] == expected
