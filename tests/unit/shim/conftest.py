"""Fixtures of the shim's own tests: a channel in this process."""

import contextlib
import os
from collections import ChainMap

import pytest
from fakes.channel_reader import ChannelReader
from tfprof.formats import layout
from tfprof.shim import core, guard
from tfprof.shim.channel.ring import Channel


@pytest.fixture
def channel():
    """A channel of this process, in which internal errors are counted."""
    made = Channel(77, 5, layout.RING_MIN)
    guard.count_errors_in(made)
    yield made
    guard.count_errors_in(None)
    with contextlib.suppress(OSError):
        os.close(made._fd)


@pytest.fixture
def reader(channel):
    """A reader of the channel."""
    made = ChannelReader(channel._fd)
    yield made
    if len(made.map) > layout.SPANS_AT:
        made.close()


@pytest.fixture
def armed(monkeypatch, tmp_path):
    """The module ``core`` of the shim, armed in this process with the default policy."""
    monkeypatch.setattr(guard, "_raise", True)
    monkeypatch.delenv("TFPROF_TRACE", raising=False)
    core.arm(ChainMap({"TFPROF_RUN": f"{5:016x}@{tmp_path}"}, os.environ))
    yield core
    core.disarm()


@pytest.fixture
def read(armed):
    """A function that reads what the armed shim has put so far and returns the reader."""
    opened: list[ChannelReader] = []

    def take():
        if not opened:
            opened.append(ChannelReader(armed.channel()._fd))
        return opened[0].take(ended=True)

    yield take
    for each in opened:
        each.close()
