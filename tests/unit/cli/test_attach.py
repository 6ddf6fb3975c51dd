"""`tfprof attach`: what it does for attachments; the attachments themselves are invented."""

from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from tfprof.agent.attach.attachment import AttachOptions
from tfprof.cli import attach


class InventedAttachment:
    """An attachment to process ``pid``."""

    is_ours, is_open = True, True

    def __init__(self, pid: int) -> None:
        self.process = SimpleNamespace(pid=pid)
        self.channel = SimpleNamespace(hello=dict)
        self.calls: list[str] = []

    @property
    def is_alive(self) -> bool:
        return self.is_open and "detach" not in self.calls

    def detach(self) -> None:
        self.calls.append("detach")

    def end(self) -> None:
        self.calls.append("end")


def test_jobs_that_an_interrupted_command_has_not_named_are_detached_from(monkeypatch: pytest.MonkeyPatch) -> None:
    invented = [InventedAttachment(pid) for pid in (7, 8)]

    def add(process: Any, _options: object, attachments: list[Any], **_rest: object) -> None:
        attachments.append(next(one for one in invented if one.process.pid == process))

    def interrupt(*_arguments: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(attach, "_process", lambda pid: pid)
    monkeypatch.setattr(attach, "_attach_to", add)
    monkeypatch.setattr(attach, "_await_listed", interrupt)
    monkeypatch.setattr(attach, "user_to_become", lambda _pids: None)
    monkeypatch.setattr(attach.signal, "signal", lambda *_arguments: None)
    with pytest.raises(KeyboardInterrupt):
        attach._attach_as_json(AttachOptions("/s"), [7, 8], has_step_count=False)
    assert [one.calls for one in invented] == [["detach", "end"]] * 2
