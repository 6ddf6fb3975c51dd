"""Fixtures of the tests of commands; a file with another store defines its own ``store``."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import ended_jobs
from fakes.command import Run, caller
from tfprof.collector.store.writer import LocalStoreWriter


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with two ended jobs."""
    return ended_jobs.write(tmp_path)


@pytest.fixture
def writer(store: Path) -> Iterator[LocalStoreWriter]:
    """The writer of the store, which now also has a running job of this host."""
    with ended_jobs.running_job(store) as store_writer:
        yield store_writer


@pytest.fixture
def run(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on the store; returns exit status, stdout, stderr."""
    monkeypatch.setenv("TFPROF_STORE", str(store))
    return caller(capsys)
