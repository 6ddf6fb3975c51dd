"""Import of a whole job, while a collector may write the store."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.made_store import HOST, rows, trace, write_job
from tfprof.collector.errors import StoreError
from tfprof.collector.store import catalog
from tfprof.collector.store.catalog import IMPORTED
from tfprof.collector.store.job_import import new_job_writer
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.retention import Limits, remove_expired
from tfprof.collector.store.writer import LocalStoreWriter


def folders(store: Path) -> list[str]:
    return sorted(path.name for path in catalog.jobs_folder(store).iterdir())


def import_job(store: Path) -> int:
    with new_job_writer(store, HOST) as writer:
        writer.append({"traces": rows("traces", [trace(0, 1, 0, 0)])})
        writer.set_identity({"name": "given"})
        assert writer.info.uid not in {job.info.uid for job in LocalStore(store).jobs()}
        writer.close(IMPORTED, {})
    return writer.info.uid


def test_a_job_appears_when_it_is_complete(tmp_path: Path) -> None:
    uid = import_job(tmp_path / "s")
    (job,) = LocalStore(tmp_path / "s").jobs()
    assert (job.info.uid, job.info.state, job.info.name) == (uid, IMPORTED, "given")
    assert job.table("traces")["step"].to_pylist() == [1]
    assert folders(tmp_path / "s") == [f"{uid:016x}"]


def test_a_failed_import_leaves_no_job(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        _fail_to_import(tmp_path / "s")
    assert folders(tmp_path / "s") == []


def _fail_to_import(store: Path) -> None:
    with new_job_writer(store, HOST) as writer:
        writer.append({"traces": rows("traces", [trace(0, 1, 0, 0)])})
        raise ZeroDivisionError


def test_a_job_can_be_imported_while_a_collector_writes_the_store(tmp_path: Path) -> None:
    write_job(tmp_path / "s", 5, {})
    collector = LocalStoreWriter(tmp_path / "s", HOST)
    uid = import_job(tmp_path / "s")
    assert remove_expired(tmp_path / "s", HOST, Limits(max_age_s=1000), time.time_ns(), ()) == []
    assert {job.info.uid for job in LocalStore(tmp_path / "s").jobs()} == {5, uid}
    removed = remove_expired(tmp_path / "s", HOST, Limits(max_age_s=0), time.time_ns() + 10**9, ())
    assert set(removed) == {5, uid}
    collector.close()


def test_an_unfinished_import_is_ignored_by_collectors_and_other_imports(tmp_path: Path) -> None:
    with new_job_writer(tmp_path / "s", HOST) as writer:
        os.utime(writer.folder, (0, 0))
        collector = LocalStoreWriter(tmp_path / "s", HOST)
        assert remove_expired(tmp_path / "s", HOST, Limits(max_age_s=0, max_bytes=0), time.time_ns(), ()) == []
        collector.close()
        other_uid = import_job(tmp_path / "s")
        writer.close(IMPORTED, {})
    assert {job.info.uid for job in LocalStore(tmp_path / "s").jobs()} == {other_uid, writer.info.uid}


def test_a_later_import_removes_the_leftovers_of_a_killed_one(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tfprof.collector.store.job_import import new_job_writer\n"
        "with new_job_writer(Path(sys.argv[1]), 'h') as writer: os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "s")], check=False)
    (leftover,) = folders(tmp_path / "s")
    assert leftover.startswith(".")
    import_job(tmp_path / "s")
    assert leftover in folders(tmp_path / "s"), "an import may have created the folder and not locked it yet"
    os.utime(catalog.jobs_folder(tmp_path / "s") / leftover, (0, 0))
    import_job(tmp_path / "s")
    assert leftover not in folders(tmp_path / "s")


def test_an_unwritable_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"\[store-unwritable\]"), new_job_writer(tmp_path / "file", HOST):
        pytest.fail("a file cannot be a store")
