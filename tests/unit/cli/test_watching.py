"""Steps are read from the ring while the job writes them."""

import os

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent.channels import ChannelReader
from tfprof.cli.watching import LINES_MAX, StepReader
from tfprof.formats import layout


@pytest.mark.parametrize("count", [2, LINES_MAX, LINES_MAX + 1])
def test_each_entry_has_a_line_but_many_of_a_kind_share_one(count: int) -> None:
    writer = ChannelWriter()
    channel = ChannelReader(os.dup(writer.fd))
    reader = StepReader(channel)
    for number in range(1, count + 1):
        writer.put_span(number, layout.TRAIN)
    writer.put_span(1, layout.EPOCH)  # no step
    lines = [line.split(maxsplit=1)[1].split("  ")[0] for line in reader.lines()]
    assert lines == ([f"train 1-{count}"] if count > LINES_MAX else [f"train {n}" for n in range(1, count + 1)])
    assert list(reader.lines()) == []
    channel.close()
    writer.close()


def test_each_of_several_functions_has_a_line_of_its_own() -> None:
    writer = ChannelWriter()
    channel = ChannelReader(os.dup(writer.fd))
    reader = StepReader(channel)
    for number in range(1, 2 * LINES_MAX + 1):
        writer.put_span(number, layout.FUNCTION, key=number % 2 + 1, total=1_000 if number % 2 else 9_000_000)
    lines = list(reader.lines())
    assert [("1.00 µs" in line, "9.00 ms" in line) for line in lines] == [(True, False), (False, True)]
    channel.close()
    writer.close()


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
