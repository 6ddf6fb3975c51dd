"""Fixtures of the shim's unit tests: a channel or the armed shim in this process, and readers."""

import contextlib
import os
from collections import ChainMap

import pytest
from fakes.channel_reader import ChannelReader
from fakes.open_channel import open_channel
from tfprof.formats import layout
from tfprof.shim import arming, core, guard
from tfprof.shim.channel.ring import Channel


@pytest.fixture
def channel():
    """A channel of this process, in which internal errors are counted."""
    new_channel = Channel(77, 5, layout.RING_MIN)
    guard.count = new_channel.count_fault
    yield new_channel
    guard.count = None
    with contextlib.suppress(OSError):
        os.close(new_channel._fd)


@pytest.fixture
def reader(channel):
    """A reader of the channel."""
    new_reader = ChannelReader(channel._fd)
    yield new_reader
    if len(new_reader.map) > layout.SPANS_AT:
        new_reader.close()


@pytest.fixture
def armed(monkeypatch, tmp_path):
    """The module ``core`` of the shim, armed in this process with the default policy."""
    monkeypatch.setattr(guard, "lets_errors_out", True)
    monkeypatch.setattr(guard, "packages", {"fakes"})  # their frames are like those of TensorFlow
    monkeypatch.delenv("TFPROF_TRACE", raising=False)
    arming.arm(ChainMap({"TFPROF_RUN": f"{5:016x}@{tmp_path}"}, os.environ))
    yield core
    core.disarm()


@pytest.fixture
def read(armed):
    """A function that reads what the armed shim has put so far and returns the reader."""
    readers: list[ChannelReader] = []

    def take():
        if not readers:
            readers.append(ChannelReader(open_channel()._fd))
        return readers[0].take(ended=True)

    yield take
    for reader in readers:
        reader.close()
