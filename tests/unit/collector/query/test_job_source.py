"""The text of a job's source file is only read if it is the file that the job was started with."""

import os
import time
from pathlib import Path

import pytest
from tfprof.collector.query.job_source import SIZE_MAX, NoTextError, source_text

LATER_NS = time.time_ns() + 3600 * 10**9


def reason(path: Path | str, before_ns: int = LATER_NS) -> str:
    with pytest.raises(NoTextError) as raised:
        source_text(str(path), before_ns)
    return str(raised.value)


def test_lines_are_those_of_python_and_without_control_characters(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_bytes(b"a\r\nb\x0cc\r\td\x1b[2J\xff\n\xe2\x80\xae")
    assert source_text(str(file), LATER_NS) == ["a", "b?c", "        d?[2J\N{REPLACEMENT CHARACTER}", "?"]


def test_a_changed_file_has_no_text_even_with_an_old_time(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("x = 1\n")
    os.utime(file, (1, 1))
    assert reason(file, time.time_ns() - 10**9) == "it was changed since the job began"


def test_a_file_that_is_none_has_no_text(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.py")
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    (tmp_path / "folder.py").mkdir()
    with (tmp_path / "large.py").open("wb") as file:
        file.truncate(SIZE_MAX + 1)
    reasons = {name: reason(tmp_path / f"{name}.py") for name in ("fifo", "link", "folder", "large", "missing")}
    assert reasons == {
        "fifo": "it is not a regular file",
        "link": "it is a symbolic link",
        "folder": "it is not a regular file",
        "large": "it is larger than 1 MB",
        "missing": "it cannot be read: No such file or directory",
    }


@pytest.mark.parametrize("path", ["/etc/passwd", "/a\0.py", "", "<string>"])
def test_other_names_are_not_opened(path: str) -> None:
    assert reason(path) == "only files named .py are read"


def test_odd_names_are_reasons() -> None:
    assert reason("train.py") == "its folder is unknown"
    assert reason("/\ud800.py") == "it cannot be read"
    assert reason(f"/{'x' * 5000}.py") == "it cannot be read: File name too long"
