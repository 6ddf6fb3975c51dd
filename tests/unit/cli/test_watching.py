"""Steps are read from the ring while the job writes them."""

import os

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent.channels import ChannelReader
from tfprof.cli.watching import StepReader
from tfprof.formats import layout


def test_a_job_that_writes_faster_than_its_steps_are_read_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = ChannelWriter()
    channel = ChannelReader(os.dup(writer.fd))
    reader, word = StepReader(channel), channel.word

    def word_and_further_steps(name: str) -> int:
        number = word(name)
        writer.set(span_head=number + 100)
        return number

    monkeypatch.setattr(channel, "word", word_and_further_steps)
    writer.set(span_head=2 * layout.SPAN_COUNT)
    assert list(reader.lines()) == []  # the entries are of no kind
    channel.close()
    writer.close()
