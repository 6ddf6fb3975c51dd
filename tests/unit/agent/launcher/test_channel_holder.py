"""The launcher holds the channels of its processes until their data is stored."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.channel_job import OPEN_CHANNEL
from tfprof.agent import processes
from tfprof.agent.channels import ChannelReader, open_file
from tfprof.agent.launcher.channel_holder import ChannelHolder
from tfprof.agent.launches import Launch
from tfprof.formats import runtime_dir

LAUNCH = int.from_bytes(os.urandom(7), "little") + 1
JOB = f"""{OPEN_CHANNEL}
writer.put(b"data")
writer.put_span(1)
print(f"{{writer.uid:016x}}", flush=True)
sys.stdin.read()
"""


class Bench:
    """A holder without an agent, and one process of its launch."""

    def __init__(self, store: Path) -> None:
        self.instance_dir = runtime_dir.make_instance(str(store))
        self.holder = ChannelHolder(
            self.instance_dir, Launch(LAUNCH, os.getpid(), time.time_ns(), str(store), "h", "u")
        )
        environ = {**os.environ, "TFPROF_RUN": f"{LAUNCH:016x}@{self.instance_dir}"}
        self.job = subprocess.Popen([sys.executable, "-c", JOB], stdin=-1, stdout=-1, text=True, env=environ)
        self.uid = self.job.stdout.readline().strip()
        self.announcement = Path(self.instance_dir, runtime_dir.ANNOUNCE, f"{self.job.pid}-{self.uid}")

    def channels(self) -> list[str]:
        """Return the descriptors of channels in this process, after an update of the holder."""
        self.holder._next_check_s = float("inf")  # no agent is started
        self.holder.update()
        paths = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        return [path for path in paths if os.path.islink(path) and "memfd:tfprof" in os.readlink(path)]

    def store_all(self) -> None:
        """Release the rings, as the agent does for each acked message."""
        (path,) = self.channels()
        channel = ChannelReader(open_file(path, os.O_RDWR))
        channel.records.release(channel.word("head"))
        channel.spans.release(channel.word("span_head"))
        channel.close()


@pytest.fixture
def bench(private_store: Path) -> Iterator[Bench]:
    new_bench = Bench(private_store)
    yield new_bench
    new_bench.job.kill()
    new_bench.job.communicate()
    new_bench.holder.close()


def test_a_channel_is_closed_when_its_process_has_ended_and_its_data_is_stored(bench: Bench) -> None:
    assert len(bench.channels()) == 1
    bench.store_all()
    bench.job.communicate()
    assert len(bench.channels()) == 1  # the end of the job is not stored
    bench.announcement.unlink()
    assert bench.channels() == []
    assert bench.holder.stored_uids == {bench.uid}
    assert bench.holder.launch_announcements == 1
    assert bench.holder.agent_has_all_channels
    bench.holder.leave(set())
    assert os.listdir(Path(bench.instance_dir, runtime_dir.LAUNCHES)) == []


def test_a_channel_with_data_that_is_not_stored_stays_open_without_its_announcement(bench: Bench) -> None:
    """The collector may have refused it: after an upgrade, another agent may store it."""
    assert len(bench.channels()) == 1
    bench.job.communicate()
    bench.announcement.unlink()
    assert len(bench.channels()) == 1
    bench.holder.leave(set())
    assert os.listdir(Path(bench.instance_dir, runtime_dir.LAUNCHES)) == [f"{LAUNCH:016x}-{bench.uid}.left"]


def test_the_channel_of_a_running_process_stays_open(bench: Bench) -> None:
    """Its agent removes the announcement when tfprof is detached, too."""
    bench.store_all()
    bench.announcement.unlink()
    assert len(bench.channels()) == 1
    assert bench.holder.stored_uids == set()


def test_the_process_of_a_channel_that_others_hold_too_is_the_one_with_its_pid(bench: Bench) -> None:
    """In a pid namespace of its own, a job announces a pid that this process does not know."""
    ((inode, path),) = processes.channels_of(bench.job.pid).items()
    holders = [processes.DescriptorHolder(pid, path) for pid in (os.getpid(), bench.job.pid)]
    for known_holders, process in ((holders[:1], None), (holders, processes.process(bench.job.pid))):
        bench.holder._find_by_scan(int(bench.uid, 16), {os.geteuid(): {inode: known_holders}}.__getitem__)
        channel = bench.holder._channels.pop(inode)
        os.close(channel.fd)
        assert channel.process == process
