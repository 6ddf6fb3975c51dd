"""Daemons get the folders of LD_LIBRARY_PATH that their Python needs to start."""

import os
import sys
from pathlib import Path

import pytest
from tfprof.commands import library_path


@pytest.fixture
def library_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three libraries that this process maps, according to a fake maps file."""
    names = ("libffi.so.8.1.2", "libz.so.1.2.13", "libstdc++.so.6.0.30")
    (tmp_path / "maps").write_text(
        "7f00-7f01 r-xp 00000000 00:00 0    [heap]\n"
        + "".join(f"7f00-7f01 r-xp 00000000 08:01 12    {tmp_path}/a lib/{name}\n" for name in names)
    )
    (tmp_path / "a lib").mkdir()
    monkeypatch.setattr(library_path, "MAPS", str(tmp_path / "maps"))
    monkeypatch.setattr(library_path, "CACHE", str(tmp_path / "cache"))
    return tmp_path / "a lib"


def write_cache(library_folder: Path, *names: str) -> None:
    (library_folder.parent / "cache").write_bytes(b"".join(name.encode() + b"\0" for name in names))


def test_a_folder_is_kept_if_the_system_lacks_a_library_that_was_loaded_from_it(library_folder: Path) -> None:
    write_cache(library_folder, "libz.so.1", "libstdc++.so.6")
    assert library_path.needed_folders(f"/usr/local/cuda/lib64:{library_folder}:relative:") == str(library_folder)


def test_a_folder_is_dropped_if_the_system_has_its_libraries_too(library_folder: Path) -> None:
    write_cache(library_folder, "libz.so.1", "libstdc++.so.6", "libffi.so.8")
    assert library_path.needed_folders(str(library_folder)) == ""


def test_every_folder_is_kept_if_the_systems_libraries_are_unknown(library_folder: Path) -> None:
    assert library_path.needed_folders(f"{library_folder}:/elsewhere") == f"{library_folder}:/elsewhere"


def test_the_folder_of_the_interpreters_libpython_is_kept() -> None:
    with open("/proc/self/maps", encoding="utf-8") as file:
        folders = {os.path.dirname(line.split(None, 5)[5].rstrip()) for line in file if "/libpython3" in line}
    if not folders or any(folder.startswith(("/usr/lib", "/lib")) for folder in folders):
        pytest.skip(f"{sys.executable} loads no libpython from outside of the system's folders")
    assert library_path.needed_folders(":".join(["/usr/local/cuda/lib64", *folders])) == ":".join(folders)
