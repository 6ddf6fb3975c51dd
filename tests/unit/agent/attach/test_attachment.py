"""The channel of a process that tfprof attaches to."""

import os
import subprocess
import threading

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent import processes
from tfprof.agent.attach import attachment
from tfprof.agent.attach.errors import GoneError
from tfprof.agent.attach.payload import ShimAnswer
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


def test_a_process_that_ends_before_its_channel_is_read_is_called_gone():
    with subprocess.Popen(["sleep", "60"]) as child:
        ending = object.__new__(attachment.Attachment)
        process = processes.process(child.pid)
        assert process is not None
        ending.process = process
        child.kill()
    with pytest.raises(GoneError, match="ended meanwhile"):
        ending._new_channel(ShimAnswer(armed=True, before=False))
