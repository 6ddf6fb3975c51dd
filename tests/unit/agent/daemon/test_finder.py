"""Channels of this instance are found, each once, with the process that created it.

Tests agent/daemon/announced_channels.py, agent/daemon/missing_channels.py.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import channel_writer
from fakes.channel_writer import ChannelWriter
from tfprof.agent import launches, processes
from tfprof.agent.announcements import ANNOUNCEMENTS_MAX, AnnounceFolder, Announcement
from tfprof.agent.daemon import finder
from tfprof.agent.daemon.finder import (
    CHANNELS_PER_PROCESS_MAX,
    OPENED_PER_CALL_MAX,
    SEARCH_SCAN_S,
    TRIES,
    Finder,
    FoundChannel,
)
from tfprof.agent.daemon.missing_channels import SEARCHES
from tfprof.agent.launches import Launch
from tfprof.formats import runtime_dir
from tfprof.formats.version import CHANNEL_VERSION

#: A random id: a finder searches all processes of the host, so with a fixed id it would find the
#: channels of other tests.
LAUNCH = int.from_bytes(os.urandom(7), "little") + 1

SCRIPT = """
import sys
from fakes.channel_writer import ChannelWriter
writer = ChannelWriter(int(sys.argv[2]), version=int(sys.argv[3]))
others = [ChannelWriter(int(sys.argv[2])) for _ in range(1, int(sys.argv[5]))]
if sys.argv[4] == "announce":
    writer.announce(sys.argv[1])
print("up", flush=True)
input()
"""


class Instance:
    """An instance folder with a launch, a finder for the folder, and processes with channels."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        for name in (runtime_dir.ANNOUNCE, runtime_dir.LAUNCHES):
            (path / name).mkdir()
        launches.write(self.path, Launch(LAUNCH, os.getpid(), time.time_ns(), "/store", "host", "user"))
        self.finder = Finder(self.path, os.geteuid())
        self.children: list[subprocess.Popen[str]] = []
        self.channels: list[FoundChannel] = []

    def job(
        self, launch: int = LAUNCH, version: int = CHANNEL_VERSION, announce: str = "no", count: int = 1
    ) -> subprocess.Popen[str]:
        environ = {
            **os.environ,
            "PYTHONPATH": str(Path(channel_writer.__file__).parent.parent),
            "TFPROF_RUN": f"{launch:016x}@{self.path}",
        }
        command = [sys.executable, "-c", SCRIPT, self.path, str(launch), str(version), announce, str(count)]
        child = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env=environ)
        self.children.append(child)
        child.stdout.readline()
        return child

    def take(self, channels: list[FoundChannel]) -> list[int | None]:
        """Keep the channels until the test ends; return the pids of their owners."""
        self.channels += channels
        return [found_channel.owner and found_channel.owner.pid for found_channel in channels]


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Instance]:
    # The finder also tries the channels of other tests, for which the usual time may not suffice.
    monkeypatch.setattr(finder, "OPENING_S", 60.0)
    new_instance = Instance(tmp_path)
    yield new_instance
    for found_channel in new_instance.channels:
        found_channel.channel.close()
    for child in new_instance.children:
        child.kill()
        child.communicate()


def test_an_announced_channel_is_found_without_a_scan_and_only_once(instance) -> None:
    child = instance.job(announce="announce")
    assert instance.take(instance.finder.open_announced()) == [child.pid]
    assert instance.finder.open_announced() == []
    assert instance.finder.scan() == []


def test_a_channel_without_an_announcement_is_found_by_a_scan(instance) -> None:
    child = instance.job()
    assert instance.finder.open_announced() == []
    assert instance.take(instance.finder.scan()) == [child.pid]
    assert instance.finder.holds(child.pid, instance.channels[0].inode)


def test_channels_of_other_launches_are_not_opened(instance) -> None:
    instance.job(launch=8, announce="announce")
    assert instance.finder.open_announced() == []
    assert instance.finder.scan() == []
    assert not instance.finder.refusals.total


def test_a_finished_channel_is_not_found_again(instance) -> None:
    instance.job()
    instance.take(instance.finder.scan())
    instance.finder.ignore(instance.channels[0].inode)
    assert instance.finder.scan() == []


def test_a_channel_of_another_version_is_refused_at_the_first_try_and_counted_once(instance) -> None:
    child = instance.job(version=9)
    instance.finder.scan()
    instance.finder.scan()
    (refusal,) = instance.finder.refusals
    assert (refusal.launch, refusal.pid, refusal.slug, refusal.times) == (LAUNCH, child.pid, "unknown-version", 1)


def test_a_channel_of_another_version_that_only_the_launcher_holds_counts_for_its_launch(instance) -> None:
    writer = ChannelWriter(LAUNCH, version=9)
    writer.announce(instance.path)
    instance.finder.open_announced()
    writer.close()
    (refusal,) = instance.finder.refusals
    assert (refusal.launch, refusal.pid, refusal.slug) == (LAUNCH, os.getpid(), "unknown-version")


def test_an_incomplete_channel_is_refused_only_after_some_tries(instance) -> None:
    child = instance.job(version=0)
    for _ in range(TRIES - 1):
        instance.finder.scan()
        assert not instance.finder.refusals.total
    instance.finder.scan()
    instance.finder.scan()
    (refusal,) = instance.finder.refusals
    assert (refusal.launch, refusal.pid, refusal.slug) == (LAUNCH, child.pid, "bad-channel")


def test_the_announcement_of_a_process_that_is_gone_is_removed_when_its_data_is_stored(instance) -> None:
    """If the agent is killed before that, its successor learns from it that data is lost."""
    child = instance.job(announce="announce")
    instance.take(instance.finder.open_announced())
    instance.finder.scan()
    folder = Path(instance.path, runtime_dir.ANNOUNCE)
    assert len(list(folder.iterdir())) == 1
    child.kill()
    child.communicate()
    instance.finder.scan()
    assert len(list(folder.iterdir())) == 1
    instance.finder.finish(instance.channels[0].inode)
    assert list(folder.iterdir()) == []


def test_the_announcement_of_a_process_that_is_gone_is_removed_when_its_channel_was_refused(instance) -> None:
    child = instance.job(announce="announce", version=99)
    instance.take(instance.finder.open_announced())
    child.kill()
    child.communicate()
    instance.finder.scan()
    assert list(Path(instance.path, runtime_dir.ANNOUNCE).iterdir()) == []


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate()


def search(instance: Instance) -> list[Announcement]:
    """Scan and try all channels, as the agent does; return the announcements of lost channels."""
    for _ in range(SEARCHES):
        instance.take(instance.finder.scan())
        while instance.finder.queue_length:
            instance.take(instance.finder.open_announced())
    lost_announcements = instance.finder.announced.take_lost()
    for lost in lost_announcements:
        instance.finder.announced.remove(lost.pid, lost.uid)
    return lost_announcements


def test_a_process_that_ends_before_its_channel_is_opened_is_counted_once(instance: Instance) -> None:
    child = instance.job(announce="announce")
    end(child)
    assert instance.finder.open_announced() == []
    assert instance.finder.awaits(LAUNCH)
    instance.take(instance.finder.scan())
    assert instance.finder.announced.take_lost() == []
    assert instance.finder.scan_is_due(time.monotonic() + SEARCH_SCAN_S)
    (lost,) = search(instance)
    assert (lost.pid, lost.launch) == (child.pid, LAUNCH)
    (refusal,) = instance.finder.refusals
    assert (refusal.launch, refusal.pid, refusal.slug, refusal.times) == (LAUNCH, child.pid, "too-short", 1)
    assert not instance.finder.awaits(LAUNCH)
    assert not instance.finder.is_searching
    assert not list(Path(instance.path, runtime_dir.ANNOUNCE).iterdir())
    assert search(instance) == []


def test_the_announcement_of_a_lost_channel_is_not_removed_as_stale(instance: Instance) -> None:
    end(instance.job(announce="announce"))
    instance.finder.open_announced()
    for _ in range(SEARCHES + 2):
        instance.finder.scan()
    assert len(list(Path(instance.path, runtime_dir.ANNOUNCE).iterdir())) == 1
    assert len(instance.finder.announced.take_lost()) == 1


def test_a_channel_that_the_launcher_holds_is_not_lost(instance: Instance) -> None:
    child = instance.job(announce="announce")
    ((_, path),) = processes.channels_of(child.pid).items()
    fd = os.open(path, os.O_RDWR)
    end(child)
    instance.children.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1, text=True, pass_fds=[fd]))
    os.close(fd)
    instance.finder.open_announced()
    assert search(instance) == []
    assert len(instance.channels) == 1


@pytest.mark.parametrize("version", [CHANNEL_VERSION, 9])
def test_a_channel_that_was_found_or_refused_before_its_announcement_is_not_lost(
    instance: Instance, version: int
) -> None:
    instance.job(version=version, announce="announce")
    instance.take(instance.finder.scan())
    instance.take(instance.finder.open_announced())
    assert search(instance) == []
    assert not instance.finder.is_searching
    assert {refusal.slug for refusal in instance.finder.refusals} == ({"unknown-version"} if version == 9 else set())


def test_a_later_agent_does_not_take_a_stored_channel_for_lost(instance: Instance) -> None:
    child = instance.job(announce="announce")
    instance.take(instance.finder.open_announced())
    end(child)
    instance.finder.finish(instance.channels[0].inode)
    later_finder = Finder(instance.path, os.geteuid())
    assert later_finder.open_announced() == []
    assert not later_finder.is_searching


def test_the_refusal_of_a_process_that_is_gone_counts_for_its_launch(instance: Instance) -> None:
    folder = Path(instance.path, runtime_dir.ANNOUNCE)
    (folder / "999999999-00000000000000ff").write_text(f"refused memfd-refused no such call\n{LAUNCH:016x}\n")
    instance.finder.open_announced()
    (refusal,) = instance.finder.refusals
    assert (refusal.launch, refusal.slug, refusal.text) == (LAUNCH, "memfd-refused", "no such call")


def test_channels_of_a_process_are_opened_up_to_a_limit_and_delay_no_other_process(instance, monkeypatch) -> None:
    monkeypatch.setattr(finder, "OPENING_S", 60.0)  # a loaded machine opens few channels in the usual time
    writers = [ChannelWriter(LAUNCH) for _ in range(3 * OPENED_PER_CALL_MAX)]
    for writer in writers:
        writer.announce(instance.path)
    # The other process announces last, with the highest uid.
    child = instance.job(announce="announce")
    last_announcement = Path(instance.path, runtime_dir.ANNOUNCE, f"{child.pid}-{'f' * 16}")
    next(Path(instance.path, runtime_dir.ANNOUNCE).glob(f"{child.pid}-*")).rename(last_announcement)
    assert child.pid in instance.take(instance.finder.open_announced())
    while instance.finder.queue_length:
        instance.take(instance.finder.open_announced())
    for writer in writers:
        writer.close()
    assert len(instance.channels) == CHANNELS_PER_PROCESS_MAX + 1
    assert instance.finder.refusals.total == 0  # this process belongs to no launch


def test_each_surplus_channel_of_a_process_is_counted_once(instance) -> None:
    child = instance.job(count=CHANNELS_PER_PROCESS_MAX + 5)
    for _ in range(3):
        instance.take(instance.finder.scan())
    assert len(instance.channels) == CHANNELS_PER_PROCESS_MAX
    (refusal,) = instance.finder.refusals
    assert (refusal.pid, refusal.slug, refusal.times) == (child.pid, "too-many-channels", 5)
    for found_channel in instance.channels:
        instance.finder.ignore(found_channel.inode)
    assert instance.take(instance.finder.scan()) == []


@pytest.mark.parametrize(("channels", "files"), [(2, 4096), (2, resource.RLIM_INFINITY), (1000, 70)])
def test_the_number_of_open_channels_is_limited_and_the_others_wait(instance, monkeypatch, channels, files) -> None:
    monkeypatch.setattr(finder, "OPEN_CHANNELS_MAX", channels)
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (files, files))
    for _ in range(3):
        instance.job()
    assert len(instance.take(instance.finder.scan())) == 2
    assert instance.finder.queue_length >= 1  # channels of other jobs on this host wait, too
    instance.finder.ignore(instance.channels[0].inode)
    assert len(instance.take(instance.finder.open_announced())) == 1


def test_many_announcements_are_handled_some_at_a_time(tmp_path) -> None:
    (tmp_path / runtime_dir.ANNOUNCE).mkdir()
    for number in range(ANNOUNCEMENTS_MAX + 10):
        (tmp_path / runtime_dir.ANNOUNCE / f"1-{number:016x}").write_text("channel\n")
    folder = AnnounceFolder(str(tmp_path))
    assert [len(folder.take_new()) for _ in range(3)] == [ANNOUNCEMENTS_MAX, 10, 0]


def test_a_scan_is_due_at_the_start_and_on_request_but_not_right_after_a_scan(instance) -> None:
    assert instance.finder.scan_is_due(time.monotonic())
    instance.finder.scan()
    assert not instance.finder.scan_is_due(time.monotonic())
    instance.finder.make_scan_due()
    assert instance.finder.scan_is_due(time.monotonic())


def test_an_announcement_with_a_pid_of_another_namespace_hastens_the_next_scan(instance) -> None:
    instance.finder.scan()
    assert not instance.finder.scan_is_due(time.monotonic() + SEARCH_SCAN_S)
    Path(instance.path, runtime_dir.ANNOUNCE, "999999999-00000000000000ff").write_text("channel\n")
    assert instance.finder.open_announced() == []
    assert instance.finder.scan_is_due(time.monotonic() + SEARCH_SCAN_S)


def test_a_channel_that_is_created_during_a_scan_is_found_with_its_owner(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = instance.job()
    ((inode, path),) = processes.channels_of(child.pid).items()
    fd = os.open(path, os.O_RDWR)
    attacher = subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1, text=True, pass_fds=[fd])
    instance.children.append(attacher)  # holds the channel, as the command that attached to the process does
    os.close(fd)
    original, scans = processes.scan, []

    def scan(uid: int) -> dict[processes.Inode, list[processes.DescriptorHolder]]:
        scans.append(original(uid))
        other_holders = [holder for holder in scans[-1][inode] if holder.pid != child.pid]
        return {inode: other_holders} if len(scans) == 1 else scans[-1]

    monkeypatch.setattr(processes, "scan", scan)
    assert instance.take(instance.finder.scan()) == [child.pid]
    assert len(scans) == 2
