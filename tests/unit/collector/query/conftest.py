"""What several tests of questions share."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tfprof.collector.store.writer import LocalStoreWriter


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LocalStoreWriter]:
    """A writer of the store in `store`, on this host."""
    store_writer = LocalStoreWriter(tmp_path / "store", socket.gethostname())
    yield store_writer
    store_writer.close()
