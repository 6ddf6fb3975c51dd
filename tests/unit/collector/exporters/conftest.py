"""Fixtures of the tests of exported files; a file with a store of its own extends ``run``."""

from pathlib import Path

import pytest
from fakes.command import Run, caller


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in the folder `work`, on the store in the test's folder."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("TFPROF_STORE", str(tmp_path / "store"))
    return caller(capsys)
