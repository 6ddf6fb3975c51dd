"""Stale folders are removed, and no others."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tfprof.agent import launches
from tfprof.agent.daemon import leftovers
from tfprof.agent.launches import Launch
from tfprof.commands import daemons
from tfprof.formats import runtime_dir
from tfprof.shim.tensorflow import recording

OLD = time.time() - leftovers.RECENT_S - 10


@pytest.fixture
def exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shm"
    folder.mkdir()
    monkeypatch.setattr(leftovers, "EXPORT_FOLDERS", (str(folder), str(tmp_path / "nowhere")))
    return folder


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def export(folder: Path, pid: int, letter: str, changed_s: float = OLD) -> Path:
    export_folder = folder / f"tfprof-{pid}-{letter * 16}"
    (export_folder / "plugins" / "profile").mkdir(parents=True)
    (export_folder / "plugins" / "profile" / "host.xplane.pb").write_bytes(b"x")
    os.utime(export_folder, (changed_s, changed_s))
    return export_folder


def test_the_name_of_a_profiler_sessions_export_folder_matches_the_pattern() -> None:
    parent, name = os.path.split(recording._folder())
    match = leftovers._EXPORT_NAME.fullmatch(name)
    assert match is not None
    assert match[1] == str(os.getpid())
    assert parent in leftovers.EXPORT_FOLDERS


def test_folders_of_sessions_whose_process_is_gone_are_removed_once_they_are_old(exports: Path) -> None:
    gone_pid, living_pid = dead_pid(), os.getpid()
    stale = export(exports, gone_pid, "a")
    kept_folders = [
        export(exports, living_pid, "b"),
        export(exports, gone_pid, "c", time.time()),
        exports / f"tfprof-{gone_pid}-notes",
    ]
    kept_folders[-1].mkdir()
    os.utime(kept_folders[-1], (OLD, OLD))
    outside = exports.parent / "outside"
    outside.mkdir()
    (outside / "file").touch()
    link = exports / f"tfprof-{gone_pid}-{'d' * 16}"
    link.symlink_to(outside)
    leftovers.remove_exports()
    assert not stale.exists()
    assert all(path.exists() for path in kept_folders)
    assert link.is_symlink()
    assert (outside / "file").exists()


def test_even_recent_folders_of_a_given_process_are_removed_if_it_is_gone(exports: Path) -> None:
    stale, other = export(exports, dead_pid(), "a", time.time()), export(exports, dead_pid(), "b", time.time())
    leftovers.remove_exports(int(stale.name.split("-")[1]))
    assert not stale.exists()
    assert other.exists()


def test_folders_of_a_living_process_are_kept(exports: Path) -> None:
    kept_folders = [
        export(exports, os.getpid(), letter, changed_s) for letter, changed_s in (("a", OLD), ("b", time.time()))
    ]
    leftovers.remove_exports(os.getpid())
    assert all(path.exists() for path in kept_folders)


def test_folders_of_a_process_that_nobody_has_waited_for_are_removed(exports: Path) -> None:
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    stale = export(exports, ended.pid, "a", time.time())
    leftovers.remove_exports(ended.pid)
    ended.wait()
    assert not stale.exists()


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "stores"


def instance(store: Path) -> Path:
    instance_dir = Path(runtime_dir.make_instance(str(store)))
    os.utime(instance_dir, (OLD, OLD))
    return instance_dir


def test_the_folder_of_a_store_that_is_gone_is_removed(stores: Path) -> None:
    instance_dir = instance(stores / "gone")
    assert runtime_dir.store_of(str(instance_dir)) == str(stores / "gone")
    leftovers.remove_instances("another")
    assert not instance_dir.exists()


def test_folders_in_use_stay(stores: Path) -> None:
    (stores / "there").mkdir(parents=True)
    own, existing = instance(stores / "own"), instance(stores / "there")
    served, launched, ended = (instance(stores / name) for name in ("served", "launched", "ended"))
    lock = daemons.PidFileLock(str(served), "collector")
    assert lock.acquire()
    launch = Launch(7, os.getpid(), time.time_ns(), "s", "h", "u")
    launches.write(str(launched), launch)
    launches.write(str(ended), launch._replace(ended_ns=1, status=0))
    unknown = instance(stores / "unknown")
    (unknown / "store").write_text("/of/another")
    os.utime(unknown, (OLD, OLD))
    given_up = instance(stores / "unmounted")
    (given_up / runtime_dir.GIVEN_UP / "7.json").touch()
    (ended / runtime_dir.GIVEN_UP / "7.json.4711.tmp").touch()
    foreign = Path(runtime_dir.runtime_root(), "0123456789ab")
    foreign.symlink_to(stores)
    young = instance(stores / "young")
    os.utime(young)
    leftovers.remove_instances(str(own))
    lock.release()
    kept = (own, existing, served, launched, unknown, given_up, foreign, young)
    assert [instance_dir.exists() for instance_dir in kept] == [True] * 8
    assert not ended.exists()


def test_a_reused_pid_is_no_living_launcher(stores: Path) -> None:
    instance_dir = instance(stores / "gone")
    launches.write(str(instance_dir), Launch(7, os.getpid(), 1_000_000_000, "s", "h", "u"))
    leftovers.remove_instances("another")
    assert not instance_dir.exists()


def test_a_damaged_folder_does_not_prevent_the_removal_of_others(stores: Path) -> None:
    instance_dirs = [instance(stores / name) for name in ("a", "b", "c")]
    (instance_dirs[0] / runtime_dir.LAUNCHES).rmdir()
    (instance_dirs[1] / runtime_dir.LAUNCHES).rmdir()
    (instance_dirs[1] / runtime_dir.LAUNCHES).write_text("a file")
    for instance_dir in instance_dirs:
        os.utime(instance_dir, (OLD, OLD))
    leftovers.remove_instances("another")
    assert [instance_dir.exists() for instance_dir in instance_dirs] == [False, True, False]
