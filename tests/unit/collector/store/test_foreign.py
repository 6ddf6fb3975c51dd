"""A store in a folder that another user prepared.

Nothing is written through links and pipes in that folder.

Tests collector/store/durable.py.
"""

import grp
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from tfprof.collector.errors import StoreError
from tfprof.collector.store import durable, lock
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.wal import Log
from tfprof.collector.store.writer import LocalStoreWriter

UID = 0xABC
SUBFOLDERS = ("jobs", "hosts", "collectors")


@pytest.fixture
def victim(tmp_path):
    """A file of the user. The attacker wants the collector to overwrite this file."""
    path = tmp_path / "victim"
    path.write_text("precious")
    yield path
    assert path.read_text() == "precious"


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store"
    path.mkdir(mode=0o700)
    return path


def refusal_text(store):
    with pytest.raises(StoreError) as caught:
        LocalStoreWriter(store, "here").close()
    assert caught.value.slug == "store-foreign"
    return caught.value.args[0]


def test_a_lock_that_is_a_link_is_refused_with_its_name(store, victim):
    (store / "collectors").mkdir(mode=0o700)
    (store / "collectors/here.lock").symlink_to(victim)
    assert str(store / "collectors/here.lock") in refusal_text(store)


def test_a_lock_that_is_a_hard_link_is_refused(store, victim):
    (store / "collectors").mkdir(mode=0o700)
    os.link(victim, store / "collectors/here.lock")
    refusal_text(store)


def test_a_lock_that_is_a_pipe_is_refused_at_once(store):
    (store / "collectors").mkdir(mode=0o700)
    os.mkfifo(store / "collectors/here.lock")
    refusal_text(store)
    assert lock.holder(store / "collectors/here.lock") is None


def test_links_in_place_of_temporary_files_are_not_followed(store, victim):
    (store / ".store.json.tmp").symlink_to(victim)
    LocalStoreWriter(store, "here").close()
    assert LocalStore(store).jobs() == []


def test_a_log_that_is_a_link_is_refused(tmp_path, victim):
    (tmp_path / "wal-000000.log").symlink_to(victim)
    with pytest.raises(StoreError) as caught:
        Log(tmp_path / "wal-000000.log")
    assert caught.value.slug == "store-foreign"


@pytest.mark.parametrize("name", SUBFOLDERS)
def test_a_subfolder_that_is_a_link_is_refused(store, tmp_path, name):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (store / name).symlink_to(tmp_path / "elsewhere")
    assert str(store / name) in refusal_text(store)
    assert not any((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", ["", *SUBFOLDERS])
def test_a_folder_that_others_may_write_is_refused_with_its_name(store, name):
    (store / name).mkdir(mode=0o700, exist_ok=True)
    (store / name).chmod(0o707)
    assert str(store / name) in refusal_text(store)
    (store / name).chmod(0o700)
    LocalStoreWriter(store, "here").close()


@pytest.mark.parametrize(("members", "is_accepted"), [([], True), (["somebody"], False)])
def test_a_folder_that_a_group_may_write_is_refused_unless_the_group_has_no_other_member(
    store, monkeypatch, members, is_accepted
):
    user = durable.pwd.getpwuid(os.geteuid())
    group = SimpleNamespace(gr_name=user.pw_name, gr_mem=members)
    monkeypatch.setattr(grp, "getgrgid", lambda _number: group)
    os.chown(store, -1, user.pw_gid)
    store.chmod(0o770)
    if is_accepted:
        LocalStoreWriter(store, "here").close()
    else:
        assert "can be written by others" in refusal_text(store)


def test_a_folder_of_another_user_is_refused(store, monkeypatch):
    own_user_id = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own_user_id + 1)
    assert f"belongs to user {own_user_id}" in refusal_text(store)


def test_a_job_folder_that_is_a_link_is_refused(store, tmp_path):
    writer = LocalStoreWriter(store, "here")
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (store / "jobs" / f"{UID:016x}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError) as caught:
        writer.job(UID)
    assert caught.value.slug == "store-foreign"
    writer.close()


def test_the_store_itself_may_be_a_link(store, tmp_path):
    (tmp_path / "link").symlink_to(store)
    LocalStoreWriter(tmp_path / "link", "here").close()
    assert (store / "store.json").exists()


def test_a_store_of_another_user_can_be_read(store, monkeypatch):
    LocalStoreWriter(store, "here").close()
    own_user_id = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own_user_id + 1)
    assert LocalStore(store).jobs() == []


def test_a_store_file_that_is_a_pipe_is_reported_as_damaged_without_waiting(store):
    os.mkfifo(store / "store.json")
    with pytest.raises(StoreError) as caught:
        LocalStoreWriter(store, "here")
    assert caught.value.slug == "store-damaged"


def test_a_failed_replacement_leaves_no_temporary_file(tmp_path):
    (tmp_path / "job.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        durable.replace(tmp_path / "job.json", b"x")
    assert [path.name for path in Path(tmp_path).iterdir()] == ["job.json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_a_store_that_is_a_link_of_another_user_is_refused(store, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(store)
    os.chown(link, 65534, 65534, follow_symlinks=False)
    assert f"{link} belongs to user 65534" in refusal_text(link)
    os.chown(link, 0, 0, follow_symlinks=False)
    LocalStoreWriter(link, "here").close()
