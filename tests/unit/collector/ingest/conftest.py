"""Collectors that nodes can send to."""

import pytest
from fakes.listening_collector import ListeningCollector
from tfprof.collector.ingest import order_routes


@pytest.fixture(autouse=True)
def _silence_is_allowed(monkeypatch):
    """Let agents be silent: those of the tests send nothing by themselves."""
    monkeypatch.setattr(order_routes, "SILENT_S", float("inf"))


@pytest.fixture
def make_head(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    heads = []

    def make(**kwargs):
        heads.append(ListeningCollector(tmp_path, **kwargs))
        return heads[-1]

    yield make
    for head in heads:
        head.close()


@pytest.fixture
def head(make_head):
    return make_head()
