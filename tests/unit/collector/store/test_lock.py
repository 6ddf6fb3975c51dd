import fcntl
import os
import subprocess
import sys

import pytest
from tfprof.collector.errors import StoreError
from tfprof.collector.store import lock

HOLDER_CODE = (
    "import sys; from tfprof.collector.store import lock; from pathlib import Path;"
    " held = lock.take(Path(sys.argv[1]), {'pid': 7}); print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "here.lock"


def test_a_missing_or_released_lock_has_no_holder(path):
    assert lock.holder(path) is None
    held_lock = lock.take(path, {"pid": 1})
    assert lock.holder(path) == {"pid": 1}
    held_lock.release()
    assert lock.holder(path) is None


def test_a_lock_ends_with_its_process(path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER_CODE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        process.stdout.readline()
        assert lock.holder(path) == {"pid": 7}
        with pytest.raises(StoreError, match="process 7") as caught:
            lock.take(path, {"pid": 2})
        assert caught.value.slug == "store-in-use"
        process.kill()
        process.wait()
    lock.take(path, {"pid": 2}).release()


def test_a_reader_of_the_lock_does_not_prevent_a_collector_from_taking_it(path, monkeypatch):
    lock.take(path, {}).release()
    reader_fd = os.open(path, os.O_RDONLY)
    lock.fcntl.flock(reader_fd, lock.fcntl.LOCK_SH)
    monkeypatch.setattr(lock.time, "sleep", lambda _: os.close(reader_fd))
    lock.take(path, {"pid": 3}).release()


def test_a_lock_with_unreadable_text_is_still_held(path):
    held_lock = lock.take(path, {"pid": 1})
    path.write_bytes(b"\xff{")
    assert lock.holder(path) == {}
    held_lock.release()


def test_the_only_writer_is_not_stopped_by_a_reader_that_keeps_the_file_locked(tmp_path):
    path = tmp_path / "host.lock"
    lock.take(path, {"id": "earlier"}).release()
    with path.open() as reader:
        fcntl.flock(reader, fcntl.LOCK_EX)
        taken = lock.take(path, {"id": "new"}, is_only_writer=True)
        assert lock.holder(path) == {"id": "new"}
        taken.release()
        assert lock.holder(path) is None
    assert [entry.name for entry in tmp_path.iterdir()] == ["host.lock"]
