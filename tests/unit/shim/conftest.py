"""Fixtures of the shim's own tests: a channel in this process."""

import contextlib
import os

import pytest
from fakes.channel_reader import ChannelReader
from tfprof.shim import guard, layout
from tfprof.shim.ring import Channel


@pytest.fixture
def channel():
    """A channel of this process, which faults are counted in."""
    made = Channel(77, 5, layout.RING_MIN)
    guard.watch(made)
    yield made
    guard.watch(None)
    with contextlib.suppress(OSError):
        os.close(made._fd)


@pytest.fixture
def reader(channel):
    """What a reader sees of it."""
    made = ChannelReader(channel._fd)
    yield made
    if len(made.map) > layout.SPANS_AT:
        made.close()
