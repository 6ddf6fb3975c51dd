"""A policy reaches the words that the job looks at."""

import os

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent import control
from tfprof.agent.channels import Channel
from tfprof.formats import layout
from tfprof.formats.policy import Policy, PolicyError


def test_a_policy_is_written_before_its_generation_and_seen_when_the_job_says_so() -> None:
    writer = ChannelWriter()
    channel = Channel(os.dup(writer.fd))
    assert control.write_policy(channel, Policy.from_text("steps=10-20", "software")) == 1
    words = {name: writer.word(name) for name in layout.AGENT_WORDS if name.startswith("policy")}
    assert words["policy_mode"] == layout.MODE_STEPS
    assert (words["policy_first"], words["policy_last"]) == (10, 20)
    assert words["policy_level"] == layout.LEVEL_SOFTWARE
    assert not control.is_seen(channel)
    writer.set(policy_seen=1)
    assert control.is_seen(channel)
    assert control.write_policy(channel, Policy.from_text("off")) == 2
    channel.close()
    writer.close()


def test_a_policy_that_the_words_cannot_hold_is_not_written() -> None:
    writer = ChannelWriter()
    channel = Channel(os.dup(writer.fd))
    with pytest.raises(PolicyError, match="one range of steps only"):
        control.write_policy(channel, Policy.from_text("steps=1-3,10"))
    assert writer.word("policy") == 0
    channel.close()
    writer.close()
