"""Fixtures of the tests of the page: a store with hostile texts, and its server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import hostile_store
from fakes.page_server import PageServer, page_server


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_store.write(tmp_path_factory.mktemp("s") / "store")


@pytest.fixture(scope="module")
def server(store: Path, runtime: Path) -> Iterator[PageServer]:
    with page_server(store, runtime) as running:
        yield running
