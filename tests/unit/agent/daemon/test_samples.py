"""Samples of the host and its jobs.

One message is sent each second, and another at the start and at the end of a job. A message that is
not acked is sent again after a silence.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent import processes
from tfprof.agent.channels import ChannelReader
from tfprof.agent.daemon import samples
from tfprof.agent.daemon.finder import FoundChannel
from tfprof.agent.daemon.job import Job
from tfprof.agent.daemon.samples import QUEUE_MAX, SAMPLE_S, TREE_BOUNDS_S, UNANSWERED_MAX, Sampler
from tfprof.agent.launches import Launch
from tfprof.agent.transport.resending import REOPEN_S, SILENCE_S, STALL_S
from tfprof.formats import wire
from tfprof.formats.wire import Head


class FakeConnection:
    """A connection that keeps the messages sent through it."""

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
    both_jobs = [
        Job(FoundChannel(ChannelReader(os.dup(writer.fd)), (0, number), owner), launch, "node7")
        for number, writer in enumerate(writers)
    ]
    yield both_jobs
    for job, writer in zip(both_jobs, writers, strict=True):
        job.channel.close()
        writer.close()


@pytest.fixture
def connection() -> FakeConnection:
    return FakeConnection()


def test_one_message_a_second_has_the_host_and_each_job(jobs: list[Job], connection: FakeConnection) -> None:
    sampler = Sampler()
    for now in (100.0, 100.5, 100.0 + SAMPLE_S):
        sampler.take(jobs, now)
    sampler.send_due(connection, 101.0)
    assert len(connection.sent) == 2
    _, body = connection.sent[0]
    assert set(body["jobs"]) == {job.hex for job in jobs}
    assert all(row["processes"] >= 1 and row["rss_bytes"] > 0 for row in body["jobs"].values())
    assert body["host"]
    assert body["t_ns"] <= connection.sent[1][1]["t_ns"]


def test_on_a_busy_host_new_processes_of_a_job_are_found_as_soon(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    def process_tree(pids: Iterable[int]) -> processes.ProcessTree:
        time.sleep(0.1)  # waits for a processor
        reads.append(1)
        return processes.process_tree(pids)

    monkeypatch.setattr(samples, "process_tree", process_tree)
    monkeypatch.setattr(samples, "all_pids", lambda: [os.getpid()])
    sampler = Sampler()
    for now in (100.0, 100.0 + TREE_BOUNDS_S[0]):
        sampler.take(jobs, now)
    assert len(reads) == 2


def test_without_a_job_nothing_is_sent(connection: FakeConnection) -> None:
    sampler = Sampler()
    sampler.take([], 100.0)
    sampler.send_due(connection, 100.0)
    assert connection.sent == []


def test_a_job_that_begins_or_ends_is_sampled_at_once(jobs: list[Job], connection: FakeConnection) -> None:
    sampler = Sampler()
    sampler.take(jobs, 100.0)
    sampler.make_due()
    sampler.take(jobs, 100.1)
    sampler.send_due(connection, 100.1)
    assert len(connection.sent) == 2


def test_unacked_samples_are_sent_again_after_a_silence(jobs: list[Job], connection: FakeConnection) -> None:
    sampler = Sampler()
    sampler.take(jobs, 100.0)
    sampler.send_due(connection, 100.0)
    sampler.send_due(connection, 100.0 + SILENCE_S)
    assert len(connection.sent) == 1
    sampler.send_due(connection, 100.1 + SILENCE_S)
    sampler.send_due(connection, 100.2 + SILENCE_S)
    (first, _), (repeated, _) = connection.sent
    assert first == repeated
    sampler.note_acked(first.last)
    sampler.send_due(connection, 300.0)
    sampler.send_due(connection, 400.0)
    assert len(connection.sent) == 2
    assert sampler.queue.unanswered == 0


def test_after_a_stall_samples_are_sent_again_later(jobs: list[Job], connection: FakeConnection) -> None:
    sampler = Sampler()
    sampler.take(jobs, 100.0)
    sampler.send_due(connection, 100.0)
    sampler.note_answer(Head(wire.STALL, 0, wire.SAMPLES), 100.0)
    sampler.send_due(connection, 100.0 + STALL_S - 0.01)
    assert len(connection.sent) == 1
    sampler.send_due(connection, 100.0 + STALL_S)
    assert len(connection.sent) == 2


def test_a_job_that_the_collector_does_not_know_is_removed_from_messages(
    jobs: list[Job], connection: FakeConnection
) -> None:
    sampler = Sampler()
    sampler.take(jobs, 100.0)
    sampler.forget(jobs[0].hex)
    sampler.send_due(connection, 100.0)
    ((_, body),) = connection.sent
    assert set(body["jobs"]) == {jobs[1].hex}
    assert body["host"]


def test_without_a_collector_the_latest_samples_are_kept(jobs: list[Job], connection: FakeConnection) -> None:
    sampler = Sampler()
    for number in range(QUEUE_MAX + 3):
        sampler.take(jobs[:1], 100.0 + number)
    sampler.send_due(connection, 10_000.0)
    assert len(connection.sent) == UNANSWERED_MAX
    while sampler.queue.unanswered:
        sampler.note_acked(connection.sent[-1][0].last)
        sampler.send_due(connection, 10_000.0)
    assert (len(connection.sent), sampler.queue.dropped) == (QUEUE_MAX, 3)
    times = [body["t_ns"] for _, body in connection.sent]
    assert times == sorted(times)


def test_an_ended_process_is_sampled_with_its_last_usage(jobs: list[Job], connection: FakeConnection) -> None:
    sampler = Sampler()
    sampler.take(jobs, 100.0)
    jobs[0].note_gone(100.0)
    sampler.make_due()
    sampler.take(jobs, 100.1)
    sampler.send_due(connection, 100.1)
    first, last = (body["jobs"][jobs[0].hex] for _, body in connection.sent)
    assert first == last


def test_a_process_that_ends_before_its_first_sample_is_in_no_message(
    jobs: list[Job], connection: FakeConnection
) -> None:
    sampler = Sampler()
    jobs[0].note_gone(100.0)
    for second in range(3):
        sampler.take(jobs, 100.0 + second)
    sampler.send_due(connection, 102.0)
    ended_in_messages, running_in_messages = ([job.hex in body["jobs"] for _, body in connection.sent] for job in jobs)
    assert (ended_in_messages, running_in_messages) == ([False, False, False], [True, True, True])


def test_a_message_with_many_unknown_jobs_is_sent_again_alone_and_once(
    jobs: list[Job], connection: FakeConnection
) -> None:
    sampler = Sampler()
    for second in range(5):
        sampler.take(jobs, 100.0 + second)
    sampler.send_due(connection, 105.0)
    assert len(connection.sent) == 5
    for _ in range(1_000):
        sampler.note_reopened(105.0)
        sampler.send_due(connection, 105.0)
    assert len(connection.sent) == 5
    for _ in range(2):
        sampler.send_due(connection, 105.0 + REOPEN_S)
    assert len(connection.sent) == 6
    sampler.note_acked(connection.sent[-1][0].last)
    sampler.send_due(connection, 106.0)
    assert len(connection.sent) == 10
