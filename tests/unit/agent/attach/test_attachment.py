"""The channel of a process that tfprof attaches to."""

import os
import subprocess
import threading

import pytest
from fakes.channel_writer import ChannelWriter
from tfprof.agent import daemon_start, processes
from tfprof.agent.attach import attachment, helper, targets
from tfprof.agent.attach.errors import AttachError, GoneError
from tfprof.agent.attach.payload import ShimAnswer
from tfprof.agent.rings import InvalidChannelError
from tfprof.formats import layout, private_files

NO_MAGIC = bytes(len(layout.MAGIC))


@pytest.fixture
def writer():
    new_writer = ChannelWriter()
    yield new_writer
    new_writer.close()


@pytest.fixture
def this_process():
    process = processes.process(os.getpid())
    assert process is not None
    return process


def test_a_channel_that_is_just_being_created_is_waited_for(writer, this_process):
    writer.map[: len(NO_MAGIC)] = NO_MAGIC
    timer = threading.Timer(0.2, writer.map.__setitem__, (slice(len(NO_MAGIC)), layout.MAGIC))
    timer.start()
    channel = attachment._channel(this_process)
    timer.join()
    assert channel is not None
    assert channel.identity.uid == writer.uid
    channel.close()


def test_a_channel_that_stays_invalid_is_an_error(writer, this_process):
    writer.map[: len(NO_MAGIC)] = NO_MAGIC
    with pytest.raises(InvalidChannelError, match="magic"):
        attachment._channel(this_process)


def test_a_process_that_ends_before_its_channel_is_read_is_called_gone():
    with subprocess.Popen(["sleep", "60"]) as child:
        ending = object.__new__(attachment.Attachment)
        process = processes.process(child.pid)
        assert process is not None
        ending.process = process
        child.kill()
    with pytest.raises(GoneError, match="ended meanwhile"):
        ending._new_channel(ShimAnswer(armed=True, before=False))


def test_an_agent_that_a_user_has_stopped_is_started_but_not_again(tmp_path, monkeypatch):
    starts = []
    monkeypatch.setattr(daemon_start, "start_daemon", lambda *arguments: starts.append(arguments))
    private_files.write_json(str(tmp_path / "agent.json"), {"stopped": True})
    attached = object.__new__(attachment.Attachment)
    attached._supervisor = daemon_start.DaemonSupervisor(str(tmp_path), "/s", daemon_start.AGENT)
    attached.ensure_agent(again=True)
    assert starts == []
    attached.ensure_agent()
    assert len(starts) == 1


@pytest.mark.parametrize(
    ("slug", "disarms"), [("no-remote-debugging", []), ("attach-busy", []), ("attach-unfinished", [("gil-callback",)])]
)
def test_only_after_a_failure_that_may_have_changed_the_job_it_is_disarmed_with_the_same_methods(
    slug, disarms, this_process, private_store, monkeypatch
):
    def refuse(*_arguments):
        raise AttachError("out of luck", slug)

    calls = []
    monkeypatch.setattr(targets, "refusal_of", lambda _pid: None)
    monkeypatch.setattr(daemon_start.DaemonSupervisor, "ensure_running", lambda _self: True)
    monkeypatch.setattr(helper, "arm", refuse)
    monkeypatch.setattr(helper, "disarm", lambda _process, _launch, methods: calls.append(methods))
    with pytest.raises(AttachError, match="out of luck"):
        attachment.Attachment(attachment.AttachOptions(str(private_store), methods=("gil-callback",)), this_process)
    assert calls == disarms
