"""Shared stores: who may read what, and what their readers find."""

import errno
import os
import stat

import pytest
from tfprof.collector.errors import StoreError
from tfprof.collector.store import catalog, durable, shared
from tfprof.collector.store.reader import LocalStore
from tfprof.collector.store.writer import LocalStoreWriter

ADA, BOB, READERS = 12_345, 12_346, 60
_ACL = "system.posix_acl_access"


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "shared"
    catalog.make_shared(path, READERS)
    return path


def write_job(root, uid, name):
    writer = LocalStoreWriter(root, "testhost")
    job = writer.job(uid)
    job.set_identity({"name": name, "host": "testhost"})
    job.close("exited")
    writer.close()


def permissions(path):
    """Return (tag, id of the user or group) -> permissions in the list of ``path``."""
    data = os.getxattr(path, _ACL)
    entries = shared._ENTRY.iter_unpack(data[4:])
    return {(tag, None if number == 0xFFFFFFFF else number): bits for tag, bits, number in entries}


def test_everything_of_a_user_can_be_read_by_the_user_and_the_readers_only(store):
    root = shared.make_root(store, ADA, READERS)
    write_job(root, 1, "job")
    paths = [root, *root.rglob("*")]
    assert len(paths) > 6
    for path in paths:
        read = 5 if path.is_dir() else 4
        found = permissions(path)
        mask = found[shared._MASK, None]
        assert found[shared._USER, ADA] & mask == read, path
        assert found[shared._GROUP, READERS] & mask == read, path
        assert found[shared._GROUP_OBJ, None] == found[shared._OTHER, None] == 0, path


def test_the_folders_above_can_be_passed_but_not_listed(store):
    assert stat.S_IMODE(store.stat().st_mode) == 0o711
    found = permissions(store / "users")
    assert found[shared._OTHER, None] == 1
    assert found[shared._GROUP, READERS] == 5


def test_other_readers_get_what_is_stored_already(store):
    root = shared.make_root(store, ADA, READERS)
    write_job(root, 1, "job")
    shared.share(store, None)
    for path in [store / "users", root, *root.rglob("*")]:
        assert (shared._GROUP, READERS) not in permissions(path), path
    catalog.make_shared(store, READERS + 1)
    assert (shared._GROUP, READERS + 1) in permissions(catalog.job_folder(store, 1) / "job.json")


def test_files_that_a_collector_renames_meanwhile_get_their_lists(store, monkeypatch):
    root = shared.make_root(store, ADA, READERS)
    write_job(root, 1, "job")
    folder = catalog.job_folder(store, 1)
    (folder / "job.json").rename(folder / "job.json.tmp")
    (folder / "removed").touch()
    set_list = os.setxattr

    def change_and_set_list(path, *arguments):
        if path.name == "job.json.tmp":
            path.rename(folder / "job.json")
        if path.name == "removed":
            path.unlink()
        set_list(path, *arguments)

    monkeypatch.setattr(os, "setxattr", change_and_set_list)
    shared.share(store, None)
    assert (shared._GROUP, READERS) not in permissions(folder / "job.json")


def test_a_private_store_stays_private_below_a_folder_with_a_list(tmp_path):
    entries = shared._list(ADA, None, is_folder=True)
    os.setxattr(tmp_path, "system.posix_acl_default", entries)
    durable.make_folder(tmp_path / "store")
    write_job(tmp_path / "store", 1, "job")
    for path in [tmp_path / "store", *(tmp_path / "store").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_reader_finds_the_jobs_of_all_users(store):
    for user, uid, name in ((ADA, 1, "adas"), (BOB, 2, "bobs")):
        write_job(shared.make_root(store, user, READERS), uid, name)
    reader = LocalStore(store)
    assert sorted(job.info.name for job in reader.jobs()) == ["adas", "bobs"]
    assert reader.job("bobs").info.uid == 2
    assert reader.current(1).name == "adas"
    assert reader.current(3) is None
    reader.remove([1])
    assert [job.info.name for job in reader.jobs()] == ["bobs"]


def test_a_user_who_may_not_list_has_the_own_folder(store, monkeypatch):
    root = shared.make_root(store, os.geteuid(), READERS)
    shared.make_root(store, BOB, READERS)

    def refuse(_path):
        raise PermissionError(errno.EACCES, "")

    monkeypatch.setattr(type(store), "iterdir", refuse)
    assert shared.roots(store) == [root]


def test_links_and_other_files_are_no_folders_of_users(store):
    (store / "users/7").symlink_to("/")
    (store / "users/8").write_text("")
    (store / "users/x").mkdir()
    assert shared.roots(store) == []


def test_a_job_of_another_user_is_known(store):
    for user, uid in ((ADA, 1), (BOB, 2)):
        write_job(shared.make_root(store, user, READERS), uid, "job")
    owner = shared.owner_of(store / "users" / str(ADA))
    assert owner is not None
    assert (owner.uid, owner.name) == (ADA, str(ADA))
    assert [owner.has_foreign_job(uid) for uid in (1, 2, 3)] == [False, True, False]
    assert shared.owner_of(store) is None


def test_only_the_service_writes_a_shared_store(store, tmp_path):
    with pytest.raises(StoreError) as info:
        LocalStoreWriter(store, "testhost")
    assert info.value.slug == "store-foreign"
    catalog.make(tmp_path / "private")
    with pytest.raises(StoreError) as info:
        catalog.make_shared(tmp_path / "private", None)
    assert info.value.slug == "store-foreign"


def test_a_filesystem_without_lists_is_refused(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", refuse)
    with pytest.raises(StoreError) as info:
        catalog.make_shared(tmp_path / "shared", None)
    assert info.value.slug == "store-acl"
