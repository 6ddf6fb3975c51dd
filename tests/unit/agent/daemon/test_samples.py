"""Samples of the host and its jobs.

There is one message a second, sent again after a silence, at once where a job begins or ends.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent import processes
from tfprof.agent.channels import Channel
from tfprof.agent.daemon.finder import Found
from tfprof.agent.daemon.job import Job
from tfprof.agent.daemon.samples import QUEUE_MAX, SAMPLE_S, Sampler
from tfprof.agent.launches import Launch
from tfprof.agent.transport.message_queue import SILENCE_S, STALL_S
from tfprof.formats import wire


class Line:
    """Takes what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[wire.Head, dict[str, Any]]] = []

    def __call__(self, head: wire.Head, body: bytes) -> bool:
        self.sent.append((head, json.loads(body)))
        return True


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[list[Job]]:
    """Two jobs that this process owns."""
    launch = Launch(7, 1, 0, str(tmp_path), "host", "user")
    writers = [ChannelWriter(7) for _ in range(2)]
    owner = processes.process(os.getpid())
    made = [
        Job(Found(Channel(os.dup(writer.fd)), (0, number), owner), launch, "node7")
        for number, writer in enumerate(writers)
    ]
    yield made
    for job, writer in zip(made, writers, strict=True):
        job.channel.close()
        writer.close()


@pytest.fixture
def line() -> Line:
    return Line()


def test_a_message_a_second_tells_of_the_host_and_each_job(jobs: list[Job], line: Line) -> None:
    sampler = Sampler()
    for now in (100.0, 100.5, 100.0 + SAMPLE_S):
        sampler.take(jobs, now)
    sampler.pump(line, 101.0)
    assert len(line.sent) == 2
    _, said = line.sent[0]
    assert set(said["jobs"]) == {job.hex for job in jobs}
    assert all(row["processes"] >= 1 and row["rss_bytes"] > 0 for row in said["jobs"].values())
    assert said["host"]
    assert said["t_ns"] <= line.sent[1][1]["t_ns"]


def test_without_a_job_there_is_nothing_to_tell(line: Line) -> None:
    sampler = Sampler()
    sampler.take([], 100.0)
    sampler.pump(line, 100.0)
    assert line.sent == []


def test_a_job_that_begins_or_ends_is_sampled_at_once(jobs: list[Job], line: Line) -> None:
    sampler = Sampler()
    sampler.take(jobs, 100.0)
    sampler.make_due()
    sampler.take(jobs, 100.1)
    sampler.pump(line, 100.1)
    assert len(line.sent) == 2


def test_what_is_not_acked_is_sent_again_after_a_silence(jobs: list[Job], line: Line) -> None:
    sampler = Sampler()
    sampler.take(jobs, 100.0)
    sampler.pump(line, 100.0)
    sampler.pump(line, 100.0 + SILENCE_S)
    assert len(line.sent) == 1
    sampler.pump(line, 100.1 + SILENCE_S)
    sampler.pump(line, 100.2 + SILENCE_S)
    (first, _), (again, _) = line.sent
    assert first == again
    sampler.note_acked(first.last, 200.0)
    sampler.pump(line, 300.0)
    sampler.pump(line, 400.0)
    assert len(line.sent) == 2
    assert sampler.queue.unanswered == 0


def test_a_collector_that_cannot_store_is_asked_again_after_a_while(jobs: list[Job], line: Line) -> None:
    sampler = Sampler()
    sampler.take(jobs, 100.0)
    sampler.pump(line, 100.0)
    sampler.stalled(100.0)
    sampler.pump(line, 100.0 + STALL_S - 0.01)
    assert len(line.sent) == 1
    sampler.pump(line, 100.0 + STALL_S)
    assert len(line.sent) == 2


def test_a_job_that_the_collector_does_not_know_is_not_told_of_again(jobs: list[Job], line: Line) -> None:
    sampler = Sampler()
    sampler.take(jobs, 100.0)
    sampler.forget(jobs[0].hex)
    sampler.pump(line, 100.0)
    ((_, said),) = line.sent
    assert set(said["jobs"]) == {jobs[1].hex}
    assert said["host"]


def test_while_no_collector_is_there_the_latest_samples_are_kept(jobs: list[Job], line: Line) -> None:
    sampler = Sampler()
    for number in range(QUEUE_MAX + 3):
        sampler.take(jobs[:1], 100.0 + number)
    sampler.pump(line, 10_000.0)
    assert (len(line.sent), sampler.queue.dropped) == (QUEUE_MAX, 3)
    times = [said["t_ns"] for _, said in line.sent]
    assert times == sorted(times)


def test_a_process_that_has_ended_is_sampled_with_what_it_used_last(jobs: list[Job], line: Line) -> None:
    sampler = Sampler()
    sampler.take(jobs, 100.0)
    jobs[0].note_gone(100.0)
    sampler.make_due()
    sampler.take(jobs, 100.1)
    sampler.pump(line, 100.1)
    first, last = (said["jobs"][jobs[0].hex] for _, said in line.sent)
    assert first == last
