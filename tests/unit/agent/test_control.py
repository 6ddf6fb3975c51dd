"""Orders are written into the control page of the job's channel."""

import os
from collections.abc import Iterator

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent import control
from tfprof.agent.channels import ChannelReader
from tfprof.formats import layout
from tfprof.formats.policy import Policy, PolicyError


@pytest.fixture
def writer() -> Iterator[ChannelWriter]:
    new_writer = ChannelWriter()
    yield new_writer
    new_writer.close()


@pytest.fixture
def channel(writer: ChannelWriter) -> Iterator[ChannelReader]:
    new_reader = ChannelReader(os.dup(writer.fd))
    yield new_reader
    new_reader.close()


def test_a_policy_is_written_with_a_new_generation(writer: ChannelWriter, channel: ChannelReader) -> None:
    assert control.write_policy(channel, Policy.from_text("steps=10-20", "software"), 77, 5, 99) == 1
    words = {name: writer.word(name) for name in layout.AGENT_WORDS if name.startswith("policy")}
    assert words["policy_mode"] == layout.MODE_STEPS
    assert (words["policy_first"], words["policy_last"]) == (10, 20)
    assert words["policy_level"] == layout.LEVEL_SOFTWARE
    assert (words["policy_order"], words["policy_count"], words["policy_end_ns"]) == (77, 5, 99)
    assert not words["policy_writing"]
    assert writer.word("agent_beat_ns")
    assert control.write_policy(channel, Policy.from_text("off"), 0, 0, 0) == 2


def test_several_ranges_are_written_into_the_table(writer: ChannelWriter, channel: ChannelReader) -> None:
    control.write_policy(channel, Policy.from_text("steps=1-3,10"), 0, 0, 0)
    assert writer.word("policy_ranges") == 2
    table = writer.map[layout.RANGES_AT : layout.RANGES_AT + 32]
    assert [int.from_bytes(table[offset : offset + 8], "little") for offset in range(0, 32, 8)] == [1, 3, 10, 10]
    control.write_policy(channel, Policy.from_text("all"), 0, 0, 0)
    assert writer.word("policy_ranges") == 0


def test_a_policy_that_the_table_cannot_hold_is_not_written(writer: ChannelWriter, channel: ChannelReader) -> None:
    ranges = ",".join(str(2 * number) for number in range(1, layout.RANGES_MAX + 1))
    with pytest.raises(PolicyError, match="16 ranges of steps at most"):
        control.write_policy(channel, Policy.from_text(f"steps={ranges},99"), 0, 0, 0)
    assert writer.word("policy") == 0
    control.write_policy(channel, Policy.from_text(f"steps={ranges}"), 0, 0, 0)
    assert writer.word("policy_ranges") == layout.RANGES_MAX


def test_the_next_order_clears_the_word_detach(writer: ChannelWriter, channel: ChannelReader) -> None:
    assert control.detach(channel, 5) == 1
    assert (writer.word("detach"), writer.word("policy_order")) == (1, 5)
    assert control.end_order(channel, 6) == 2
    assert (writer.word("detach"), writer.word("order_end"), writer.word("policy_order")) == (0, 1, 6)
    assert 0 < writer.word("policy_end_ns") <= writer.word("agent_beat_ns")
    assert control.withdraw(channel) == 3
    assert (writer.word("order_end"), writer.word("policy_order")) == (0, 0)
    assert 0 < writer.word("policy_end_ns") <= writer.word("agent_beat_ns")
