"""The folder of announcements returns each announcement once."""

import contextlib
import os
from pathlib import Path

import pytest
from tfprof.agent import announcements
from tfprof.agent.announcements import AnnounceFolder


@pytest.fixture
def instance_dir(tmp_path: Path) -> Path:
    (tmp_path / "announce").mkdir()
    return tmp_path


def test_each_announcement_is_returned_once(instance_dir) -> None:
    folder = AnnounceFolder(str(instance_dir))
    assert folder.take_new() == []
    (instance_dir / "announce" / "12-00000000000000ff").write_text("channel\n")
    (announcement,) = folder.take_new()
    assert (announcement.pid, announcement.uid, announcement.refusal) == (12, 0xFF, None)
    assert folder.take_new() == []
    (instance_dir / "announce" / "13-00000000000000fe").write_text("channel\n")
    assert [announcement.pid for announcement in folder.take_new()] == [13]


def test_a_refusal_has_a_slug_and_a_text(instance_dir) -> None:
    (instance_dir / "announce" / "12-00000000000000ff").write_text("refused memfd-refused no such call\n")
    (announcement,) = AnnounceFolder(str(instance_dir)).take_new()
    assert announcement.refusal == {"slug": "memfd-refused", "text": "no such call"}


@pytest.mark.parametrize(
    ("content", "text", "launch"),
    [
        ("channel\n", "channel", 0),
        ("channel\n00000000000000ab\n", "channel", 0xAB),
        ("refused full no\nmemory\n00000000000000ab\n", "refused full no memory", 0xAB),
        ("channel\nab\n", "channel ab", 0),
        ("00000000000000ab\n", "", 0xAB),
        ("\n", "", 0),
    ],
)
def test_the_last_line_is_the_launch_if_it_is_an_id(instance_dir, content, text, launch) -> None:
    (instance_dir / "announce" / "12-00000000000000ff").write_text(content)
    (announcement,) = AnnounceFolder(str(instance_dir)).take_new()
    assert (announcement.text, announcement.launch) == (text, launch)


def test_an_incomplete_file_is_returned_once_it_is_complete(instance_dir) -> None:
    folder = AnnounceFolder(str(instance_dir))
    path = instance_dir / "announce" / "12-00000000000000ff"
    path.write_text("refu")
    assert folder.take_new() == []
    path.write_text("refused full no memory\n")
    os.utime(instance_dir / "announce", ns=(1, 1))
    assert [announcement.refusal and announcement.refusal["slug"] for announcement in folder.take_new()] == ["full"]


@pytest.mark.parametrize(
    "name", ["x", "12", "12-ff", "-1-00000000000000ff", "12-00000000000000fg", "12-00000000000000ff.tmp"]
)
def test_other_files_are_no_announcements(instance_dir, name: str) -> None:
    (instance_dir / "announce" / name).write_text("channel\n")
    assert AnnounceFolder(str(instance_dir)).take_new() == []


def test_a_name_that_appears_again_is_returned_again(instance_dir) -> None:
    folder = AnnounceFolder(str(instance_dir))
    path = instance_dir / "announce" / "12-00000000000000ff"
    path.write_text("channel\n")
    (announcement,) = folder.take_new()
    folder.remove(announcement.pid, announcement.uid)
    folder.remove(announcement.pid, announcement.uid)
    assert folder.take_new() == []
    path.write_text("channel\n")
    assert [repeated.pid for repeated in folder.take_new()] == [announcement.pid]


def test_a_missing_folder_has_no_announcements(tmp_path) -> None:
    assert AnnounceFolder(str(tmp_path)).take_new() == []


def test_each_file_of_a_folder_with_too_many_is_returned_at_most_once(instance_dir, monkeypatch) -> None:
    monkeypatch.setattr(announcements, "FILES_MAX", 2)
    original, reversals = os.scandir, [False, True, False, True]

    def scandir(path: str):
        entries = sorted(original(path), key=lambda entry: entry.name, reverse=reversals.pop())
        return contextlib.nullcontext(iter(entries))

    monkeypatch.setattr(os, "scandir", scandir)
    for number in range(4):
        (instance_dir / "announce" / f"{number}-00000000000000ff").write_text("channel\n")
    folder = AnnounceFolder(str(instance_dir))
    assert [announcement.pid for _ in range(4) for announcement in folder.take_new()] == [2, 3, 0, 1]
