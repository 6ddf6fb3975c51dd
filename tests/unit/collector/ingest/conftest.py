"""Collectors that nodes can send to."""

import pytest
from fakes.listening_collector import ListeningCollector


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
