"""The channel of a process that tfprof attaches to."""

import os
import threading

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent import processes
from tfprof.agent.attach import attachment
from tfprof.agent.rings import InvalidChannelError
from tfprof.formats import layout

NO_MAGIC = bytes(len(layout.MAGIC))


@pytest.fixture
def writer():
    new_writer = ChannelWriter()
    yield new_writer
    new_writer.close()


@pytest.fixture
def this_process():
    process = processes.process(os.getpid())
    assert process is not None
    return process


def test_a_channel_that_is_just_being_created_is_waited_for(writer, this_process):
    writer.map[: len(NO_MAGIC)] = NO_MAGIC
    timer = threading.Timer(0.2, writer.map.__setitem__, (slice(len(NO_MAGIC)), layout.MAGIC))
    timer.start()
    channel = attachment._channel(this_process)
    timer.join()
    assert channel is not None
    assert channel.identity.uid == writer.uid
    channel.close()


def test_a_channel_that_stays_invalid_is_an_error(writer, this_process):
    writer.map[: len(NO_MAGIC)] = NO_MAGIC
    with pytest.raises(InvalidChannelError, match="magic"):
        attachment._channel(this_process)
