"""The shell's history: readable by its user only, and optional."""

from pathlib import Path

import pytest
from tfprof.cli.shell_history import LINES_MAX, LineHistory, history_file


def test_lines_are_saved_for_later_shells_and_readable_by_their_user_only(tmp_path: Path) -> None:
    path = tmp_path / "state" / "tfprof" / "shell_history"
    history = LineHistory(path)
    for text in ("op", "op", "scope -step 1", "op"):
        history.add(text)
    assert LineHistory(path).texts == history.texts == ["op", "scope -step 1", "op"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_permissions_of_others_are_removed_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("op\n")
    path.chmod(0o644)
    LineHistory(path).add("scope")
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_number_of_saved_lines_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "history"
    history = LineHistory(path)
    for number in range(LINES_MAX + 10):
        history.add(f"op -step {number}")
    saved_lines = path.read_text().splitlines()
    assert len(saved_lines) <= LINES_MAX
    assert saved_lines[-1] == f"op -step {LINES_MAX + 9}"
    assert path.stat().st_mode & 0o777 == 0o600
    assert history.texts == saved_lines == LineHistory(path).texts


def test_lines_are_kept_for_the_session_if_there_is_no_file(tmp_path: Path) -> None:
    history = LineHistory()
    history.add("op")
    assert history.texts == ["op"]
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_file_is_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    history = LineHistory(tmp_path / "file" / "shell_history")
    history.add("op")
    history.add("scope")
    messages = capsys.readouterr().err.splitlines()
    assert len(messages) == 1
    assert messages[0].startswith("tfprof: lines are not saved for later shells: ")
    assert history.texts == ["op", "scope"]


def test_bytes_that_are_not_text_do_not_prevent_a_shell_from_starting(tmp_path: Path) -> None:
    (tmp_path / "history").write_bytes(b"op\n\xff\xfe\n")
    assert LineHistory(tmp_path / "history").texts[0] == "op"


def test_the_file_is_in_the_users_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
    assert history_file() == Path("/somewhere/tfprof/shell_history")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    assert history_file() == Path("/home/ada/.local/state/tfprof/shell_history")
