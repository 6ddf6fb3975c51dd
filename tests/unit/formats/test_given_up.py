"""Files about jobs whose data an agent has given up."""

import os
from pathlib import Path

from tfprof.formats import given_up, runtime_dir


def test_the_files_of_several_jobs_are_read_back(tmp_path: Path) -> None:
    assert list(given_up.pending(str(tmp_path))) == []
    (tmp_path / runtime_dir.GIVEN_UP).mkdir()
    assert list(given_up.pending(str(tmp_path))) == []
    for uid in (7, 8):
        given_up.write(str(tmp_path), uid, {"name": "a"}, {"state": "ended"})
    files = list(given_up.pending(str(tmp_path)))
    assert [value for _, value in files] == [
        {"uid": uid, "identity": {"name": "a"}, "end": {"state": "ended"}} for uid in (7, 8)
    ]
    for path, _ in files:
        os.unlink(path)
    assert list(given_up.pending(str(tmp_path))) == []


def test_a_damaged_file_has_no_value(tmp_path: Path) -> None:
    folder = tmp_path / runtime_dir.GIVEN_UP
    folder.mkdir()
    for name, text in (("a", ""), ("b", '{"uid": "7", "identity": {}, "end": {}}'), ("c", '{"uid": 7}')):
        (folder / f"{name}.json").write_text(text)
    (folder / "note.txt").write_text("not ours")
    os.mkfifo(folder / "d.json")
    assert [value for _, value in given_up.pending(str(tmp_path))] == [None] * 4
