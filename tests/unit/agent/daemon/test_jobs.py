"""The jobs of an agent: adopted, refused, closed, given up."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent import launches, processes
from tfprof.agent.channels import ChannelReader
from tfprof.agent.daemon.event_waiter import EventWaiter
from tfprof.agent.daemon.finder import Finder, FoundChannel
from tfprof.agent.daemon.jobs import ENDING_POLL_S, POLL_S, Jobs
from tfprof.agent.daemon.launch_results import LaunchResults
from tfprof.agent.daemon.samples import Sampler
from tfprof.agent.launches import Launch
from tfprof.formats import given_up, runtime_dir, wire
from tfprof.formats.wire import Head


class Bench:
    """Jobs whose finder and waiter are recorded; this process is the owner of every channel."""

    def __init__(self, instance_dir: str) -> None:
        self.instance_dir = instance_dir
        self.finder = Mock(Finder, refusals=Mock())
        self.waiter = Mock(EventWaiter)
        self.jobs = Jobs(instance_dir, "h", self.finder, self.waiter, LaunchResults(instance_dir), Sampler())
        self.writers: list[ChannelWriter] = []

    def adopt(self, inode: int) -> None:
        """Adopt the channel of launch 7, found as ``inode``."""
        self.writers = self.writers or [ChannelWriter(7)]
        channel = ChannelReader(os.dup(self.writers[0].fd))
        self.jobs.adopt([FoundChannel(channel, (0, inode), processes.process(os.getpid()))])

    @property
    def uid(self) -> int:
        return next(iter(self.jobs.by_uid))

    def answer(self, kind: int, about: int, last: int = 0) -> bool:
        reason = {"slug": "too-old", "text": "no"}
        return self.jobs.note_answer(Head(kind, self.uid, about, 0, last), reason, time.monotonic())


@pytest.fixture
def bench(private_store: Path) -> Iterator[Bench]:
    bench = Bench(runtime_dir.make_instance(str(private_store)))
    launches.write(bench.instance_dir, Launch(7, os.getppid(), time.time_ns(), str(private_store), "h", "u"))
    yield bench
    bench.jobs.close()
    for writer in bench.writers:
        writer.close()


def test_a_second_channel_with_the_uid_of_a_job_is_refused(bench: Bench) -> None:
    bench.adopt(1)
    bench.adopt(2)
    assert [job.inode for job in bench.jobs] == [(0, 1)]
    ((inode, launch, pid, error),) = [call.args for call in bench.finder.refuse.call_args_list]
    assert (inode, launch, pid, error.slug) == ((0, 2), 7, os.getpid(), "bad-channel")


def test_a_channel_of_an_unknown_launch_is_ignored(bench: Bench) -> None:
    os.unlink(Path(bench.instance_dir, runtime_dir.LAUNCHES, f"{7:016x}.json"))
    bench.adopt(1)
    assert not bench.jobs
    bench.finder.ignore.assert_called_once_with((0, 1))


def test_a_job_that_the_collector_refuses_is_dropped(bench: Bench) -> None:
    bench.adopt(1)
    uid = bench.uid
    assert not bench.answer(wire.REFUSE, wire.OPEN)
    assert not bench.jobs
    bench.waiter.forget.assert_called_once_with(uid)
    assert bench.finder.refuse.call_args.args[3].slug == "too-old"


def test_an_ended_job_is_polled_often_and_closed_once_its_end_is_stored(bench: Bench) -> None:
    bench.adopt(1)
    assert bench.jobs.poll_s(time.monotonic(), is_taken=True) == POLL_S
    (job,) = bench.jobs
    job.note_gone(time.monotonic())
    assert bench.jobs.poll_s(time.monotonic(), is_taken=False) == ENDING_POLL_S
    assert bench.jobs.abandoned == [job]  # the launcher is not known to run
    bench.jobs.queue_end(job)
    bench.jobs.close_stored()
    assert list(bench.jobs) == [job]
    bench.answer(wire.ACK, wire.CLOSE, 1)
    bench.jobs.close_stored()
    assert not bench.jobs
    bench.finder.finish.assert_called_once_with((0, 1))


def test_the_announcement_of_a_job_stays_if_it_cannot_be_given_up(bench: Bench) -> None:
    bench.adopt(1)
    (job,) = bench.jobs
    job.note_gone(time.monotonic())
    os.rmdir(Path(bench.instance_dir, runtime_dir.GIVEN_UP))
    with pytest.raises(FileNotFoundError):
        bench.jobs.give_up(job)
    bench.finder.finish.assert_not_called()


def test_a_job_is_given_up_by_a_file_for_the_collector(bench: Bench) -> None:
    bench.adopt(1)
    (job,) = bench.jobs
    job.note_gone(time.monotonic())
    bench.jobs.give_up(job)
    ((_, document),) = given_up.pending(bench.instance_dir)
    assert document is not None
    assert document["uid"] == job.uid
    bench.finder.finish.assert_called_once_with((0, 1))
