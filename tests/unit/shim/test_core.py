"""Arming and disarming: conditions, replacements while armed, and their undoing."""

import contextlib
import os
import sys

import pytest
from fakes.open_channel import open_channel
from fakes.our_code import ours
from tfprof.formats import layout
from tfprof.shim import arming, core, guard, own_os
from tfprof.shim.opening import Hello

RUN_PREFIX = f"{7:016x}@"


@pytest.fixture(autouse=True)
def disarmed(monkeypatch: pytest.MonkeyPatch):
    """Disarm the shim and close its channel after each test."""
    monkeypatch.setattr(guard, "lets_errors_out", True)
    yield
    channel = core.state().channel if core.state() is not None else None
    core.disarm()
    if channel is not None:
        with contextlib.suppress(OSError):
            os.close(channel._fd)


@pytest.mark.parametrize("run", [None, "", "@/folder", "7@/folder", "x" * 16 + "@/folder", f"{7:016x}", f"{7:017x}@/f"])
def test_an_invalid_launch_arms_nothing(run):
    before = list(sys.meta_path)
    arming.arm({} if run is None else {"TFPROF_RUN": run})
    assert core.state() is None
    assert open_channel() is None
    assert sys.meta_path == before


def test_a_process_is_armed_once_for_its_first_launch(tmp_path):
    arming.arm({"TFPROF_RUN": f"{RUN_PREFIX}{tmp_path}"})
    first = core.state()
    arming.arm({"TFPROF_RUN": f"{8:016x}@/elsewhere"})
    assert core.state() is first
    assert (first.launch, first.folder) == (7, str(tmp_path))


def test_a_setuid_program_is_not_armed(monkeypatch, tmp_path):
    monkeypatch.setattr(own_os.os, "geteuid", lambda: os.getuid() + 1)
    arming.arm({"TFPROF_RUN": f"{RUN_PREFIX}{tmp_path}"})
    assert core.state() is None


def test_the_channel_is_created_once_when_it_is_needed(tmp_path):
    (tmp_path / "announce").mkdir()
    arming.arm({"TFPROF_RUN": f"{RUN_PREFIX}{tmp_path}"})
    assert core.state().channel is None
    assert list((tmp_path / "announce").iterdir()) == []
    channel = open_channel()
    assert channel is open_channel() is core.state().channel
    assert [path.read_text() for path in (tmp_path / "announce").iterdir()] == ["channel\n0000000000000007\n"]
    assert channel.threads.tid == int(os.readlink("/proc/thread-self").rpartition("/")[2])


def test_a_step_during_the_creation_of_the_channel_is_untraced_and_the_channel_is_created(monkeypatch, tmp_path):
    arming.arm({"TFPROF_RUN": f"{RUN_PREFIX}{tmp_path}"})
    tracker = core.tracker(layout.RUN)
    original = Hello.write

    def write(hello):
        assert tracker.level(tracker.next(), 0) is None
        original(hello)

    monkeypatch.setattr(Hello, "write", write)
    assert open_channel() is not None
    tracker.open()
    assert tracker.channel is open_channel()


def test_a_channel_that_cannot_be_created_is_tried_once(monkeypatch, tmp_path):
    (tmp_path / "announce").mkdir()
    calls = []

    @ours
    def refuse(*_arguments):
        calls.append(1)
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(own_os.os, "memfd_create", refuse)
    arming.arm({"TFPROF_RUN": f"{RUN_PREFIX}{tmp_path}"})
    assert open_channel() is None
    call_count = len(calls)
    assert call_count
    assert open_channel() is None
    assert len(calls) == call_count
    (announced,) = (path.read_text() for path in (tmp_path / "announce").iterdir())
    assert announced.startswith("refused memfd-refused")


class Owner:
    """The owner of a replaced method."""

    def method(self):
        return "theirs"


def test_a_replacement_is_undone_unless_another_replacement_followed(tmp_path):
    arming.arm({"TFPROF_RUN": f"{RUN_PREFIX}{tmp_path}"})
    theirs = Owner.__dict__["method"]
    core.replace(Owner, "method", lambda original: lambda self: original(self) + " and ours")
    core.replace(Owner, "method", lambda _original: None)  # ours is not replaced again
    core.replace(Owner, "missing", lambda _original: None)
    assert Owner().method() == "theirs and ours"
    assert not hasattr(Owner, "missing")
    core.disarm()
    assert Owner.__dict__["method"] is theirs
    arming.arm({"TFPROF_RUN": f"{RUN_PREFIX}{tmp_path}"})
    core.replace(Owner, "method", lambda original: lambda self: original(self) + " and ours")
    ours = Owner.__dict__["method"]
    try:
        setattr(Owner, "method", lambda self: ours(self) + " and a third one's")  # noqa: B010 - as below
        core.disarm()
        assert Owner().method() == "theirs and ours and a third one's"
    finally:
        setattr(Owner, "method", theirs)  # noqa: B010 - mypy forbids an assignment to a method


def test_each_kind_has_one_tracker_and_budgeted_kinds_are_known(tmp_path):
    arming.arm({"TFPROF_RUN": f"{RUN_PREFIX}{tmp_path}"})
    train, summary = core.tracker(layout.TRAIN), core.tracker(layout.SUMMARY, budgeted=False)
    assert core.tracker(layout.TRAIN) is train is not summary
    assert core.state().budgeted_kinds == {layout.TRAIN}


def test_the_channel_shows_that_the_shim_was_disarmed(tmp_path):
    (tmp_path / "announce").mkdir()
    arming.arm({"TFPROF_RUN": f"{RUN_PREFIX}{tmp_path}"})
    duplicate = os.dup(open_channel()._fd)
    core.disarm()
    core.disarm()
    assert int.from_bytes(os.pread(duplicate, 8, layout.JOB_WORDS["detached"]), "little") == 1
    assert core.state() is None
    assert open_channel() is None
    os.close(duplicate)


def test_a_forked_child_has_a_separate_channel(tmp_path):
    (tmp_path / "announce").mkdir()
    arming.arm({"TFPROF_RUN": f"{RUN_PREFIX}{tmp_path}"})
    open_channel()
    core.report_missing("a module lacks a name")
    core.report_missing("a module lacks a name")
    assert open_channel().words[layout.WORD["records"]] == 1
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            was_none = core.state().channel is None
            is_same = open_channel() is core.state().channel
            os.write(write, b"%d %d %d" % (was_none, is_same, open_channel().words[layout.WORD["records"]]))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        assert answer.read() == "1 1 1"
    os.waitpid(child, 0)
    pids = sorted(int(path.name.partition("-")[0]) for path in (tmp_path / "announce").iterdir())
    assert pids == sorted([os.getpid(), child])
