"""Files for users are written completely, or an error is raised and nothing is written."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tfprof.collector.errors import TfprofError
from tfprof.collector.export.files import check_is_new, write


def test_a_file_is_replaced_without_a_left_over_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"a longer text than before")
    write(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["out"]


def test_a_replaced_file_keeps_its_permissions_and_a_new_file_has_the_default_permissions(tmp_path: Path) -> None:
    plain, old, new = (tmp_path / name for name in ("plain", "old", "new"))
    plain.touch()
    old.touch(0o640)
    write(old, b"")
    write(new, b"")
    assert old.stat().st_mode == 0o100640
    assert new.stat().st_mode == plain.stat().st_mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    write(link, b"x")
    assert link.is_symlink()
    assert target.read_bytes() == b"x"


def test_devices_are_written_to_and_a_full_device_is_an_error() -> None:
    write("/dev/null", b"x")
    with pytest.raises(TfprofError, match=r"cannot write /dev/full: No space left on device \[io\]"):
        write("/dev/full", b"x" * 100_000)


def test_a_file_in_shared_memory_is_replaced() -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(b"old")
        file.flush()
        write(file.name, b"new")
        assert Path(file.name).read_bytes() == b"new"
        assert os.fstat(file.fileno()).st_nlink == 0, "the old file is no longer in the folder"
        Path(file.name).touch()


def test_an_open_file_is_written_into(tmp_path: Path) -> None:
    with (tmp_path / "redirected").open("w+b") as file:
        check_is_new(f"/proc/self/fd/{file.fileno()}")
        write(f"/proc/self/fd/{file.fileno()}", b"x")
        assert file.read() == b"x"


@pytest.mark.parametrize(
    ("path", "reason"), [("missing/out", "No such file or directory"), (".", "Is a directory"), ("a/b", "Not a dir")]
)
def test_the_error_names_the_file_that_cannot_be_written(
    path: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").touch()
    with pytest.raises(TfprofError, match=rf"cannot write {path}: {reason}.* \[io\]"):
        write(path, b"x")
    assert os.listdir(tmp_path) == ["a"]


def test_a_name_of_the_maximum_length_can_be_written(tmp_path: Path) -> None:
    write(tmp_path / ("x" * 255), b"x")
    assert os.listdir(tmp_path) == ["x" * 255]


@pytest.mark.parametrize("has_unnamed_files", [True, False])
def test_a_failure_of_the_content_leaves_nothing(
    has_unnamed_files: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a file system whose files all have names."""
    if not has_unnamed_files:
        monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY)

    def pieces(end: bytes | None) -> Iterator[bytes]:
        yield b"whole, "
        if end is None:
            raise KeyError("the content")
        yield end

    with pytest.raises(KeyError):
        write(tmp_path / "new", pieces(None))
    assert os.listdir(tmp_path) == []
    write(tmp_path / "new", pieces(b"not half"))
    assert (tmp_path / "new").read_bytes() == b"whole, not half"
    assert os.listdir(tmp_path) == ["new"]


def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from tfprof.collector.export.files import write\n"
        "def pieces(): yield b'x' * 2_000_000; os.kill(os.getpid(), int(sys.argv[1]))\n"
        "write(sys.argv[2], pieces())"
    )
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        command = [sys.executable, "-c", code, str(int(number)), str(tmp_path / "out")]
        assert subprocess.run(command, check=False).returncode == -number
    assert os.listdir(tmp_path) == []
