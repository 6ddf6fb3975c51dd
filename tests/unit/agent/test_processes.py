"""This process and its children in /proc."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes import channel_writer
from fakes.channel_writer import ChannelWriter
from tfprof.agent import processes
from tfprof.agent.processes import Process


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.communicate()


def test_a_process_is_alive_until_it_ends_and_a_zombie_has_ended(child) -> None:
    process = processes.process(child.pid)
    assert process.is_alive
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not process.is_alive
    assert processes.process(1 << 30) is None


def test_a_reused_pid_is_another_process(child) -> None:
    assert not Process(child.pid, 1).is_alive


def test_a_process_and_its_child_are_descendants_of_the_process(child) -> None:
    assert processes.is_descendant(child.pid, os.getpid())
    assert processes.is_descendant(child.pid, child.pid)
    assert not processes.is_descendant(os.getpid(), child.pid)
    assert not processes.is_descendant(1 << 30, os.getpid())


def test_a_tree_is_the_process_and_its_descendants_without_excluded_ones(child) -> None:
    process_tree = processes.process_tree(processes.all_pids())
    assert {member.pid for member in process_tree.subtree(os.getpid(), frozenset())} >= {os.getpid(), child.pid}
    assert child.pid not in {member.pid for member in process_tree.subtree(os.getpid(), frozenset([child.pid]))}
    assert process_tree.subtree(1 << 30, frozenset()) == []


def test_a_channel_is_found_at_its_holder_but_never_at_the_caller() -> None:
    script = (
        "import sys; from fakes.channel_writer import ChannelWriter; w = ChannelWriter(); print(1, flush=True); input()"
    )
    environ = {
        **os.environ,
        "PYTHONPATH": str(Path(channel_writer.__file__).parent.parent),
    }
    own_channel = ChannelWriter()
    with subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1, env=environ) as child:
        child.stdout.readline()
        holder_pids = {holder.pid for holders in processes.scan(os.geteuid()).values() for holder in holders}
        (inode,) = processes.channels_of(child.pid)
        assert processes.still_maps(child.pid, inode)
        assert processes.ns_pid(child.pid) == child.pid
        child.stdin.close()
    assert child.pid in holder_pids
    assert os.getpid() not in holder_pids
    assert not processes.still_maps(os.getpid(), inode)
    own_channel.close()


def test_a_file_that_the_process_closes_meanwhile_hides_no_channel(monkeypatch) -> None:
    own_channel = ChannelWriter()
    closed_fd = os.open("/dev/null", os.O_RDONLY)
    original = os.readlink

    def readlink(path):
        if path.endswith(f"/{closed_fd}"):
            raise FileNotFoundError(path)
        return original(path)

    monkeypatch.setattr(os, "readlink", readlink)
    monkeypatch.setattr(os, "listdir", lambda _folder: [str(closed_fd), str(own_channel.fd)])
    assert len(processes.channels_of(os.getpid())) == 1
    os.close(closed_fd)
    own_channel.close()


def test_names_with_parentheses_and_spaces_are_parsed(tmp_path) -> None:
    path = tmp_path / "a) R 1 (b"
    path.symlink_to("/bin/sleep")
    with subprocess.Popen([str(path), "100"]) as process:
        while not processes.process_tree([process.pid]).members:
            time.sleep(0.01)
        process_tree = processes.process_tree([process.pid])
        assert list(process_tree.children) == [os.getpid()]
        process.kill()
