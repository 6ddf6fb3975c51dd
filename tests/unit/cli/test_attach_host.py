"""What a node says about the process that it has attached to gives it no power over other jobs.

Tests collector/node_client.py.
"""

import json
from pathlib import Path

import pytest
from fakes.made_store import write_job
from tfprof.cli import attach_host
from tfprof.cli.attach_host import NotStoredError, attach_on
from tfprof.cli.outputs import Outputs
from tfprof.collector.documents.attached import Attached, attach_document
from tfprof.collector.node_client import HostReply
from tfprof.formats.requests import Reply

UID = 0xA << 60
NO_OUTPUTS = Outputs((), ())


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with a job of node2, of which node1 says that it has attached to it."""
    write_job(tmp_path / "store", UID, {}, state=None, identity={"host": "node2", "node": "node2"})
    output = json.dumps(attach_document([Attached(7, UID, "\x1b[2Jx", "channel", 0)], []))
    monkeypatch.setattr(attach_host, "one_reply", lambda *_arguments: HostReply("node1", Reply(0, output)))
    monkeypatch.setattr(attach_host, "give", lambda *_arguments: pytest.fail("an order to a job of another node"))
    monkeypatch.setattr(attach_host, "FOUND_S", 0.1)
    return str(tmp_path / "store")


def test_a_node_cannot_name_a_job_of_another_node(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotStoredError):
        attach_on(store, "node1", 7, {}, 5, NO_OUTPUTS)
    errors = capsys.readouterr().err
    assert "not detached: no such job of node1" in errors
    assert "\x1b" not in errors


def test_without_steps_the_command_returns_at_once(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert attach_on(store, "node1", 7, {}, None, NO_OUTPUTS) == 0
    assert "tfprof detach a000" in capsys.readouterr().err


def test_the_job_is_named_by_a_start_of_its_id_that_no_other_job_has(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(Path(store), UID + (1 << 44), {}, identity={"host": "node2", "node": "node2"})
    attach_on(store, "node1", 7, {}, None, NO_OUTPUTS)
    assert "tfprof detach a0000\n" in capsys.readouterr().err
