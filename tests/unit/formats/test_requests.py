"""Requests to other hosts: what a command line gets from them, and what is refused."""

import json
from typing import Any

import pytest
from tfprof.formats.errors import FormatError
from tfprof.formats.orders import Giver
from tfprof.formats.requests import ATTACH, DOCTOR, PS, Reply, Request, RequestError, reply_of, request_of

GIVER = Giver("ada", "head", 1)


@pytest.mark.parametrize(
    ("request_", "arguments"),
    [
        (Request(PS, GIVER), "ps --json"),
        (Request(DOCTOR, GIVER, 7), "doctor --json 7"),
        (Request(ATTACH, GIVER, 7), "attach --json --no-wait 7"),
        (
            Request(ATTACH, GIVER, 7, {"name": "--all", "steps": "3"}),
            "attach --json --no-wait --name=--all --steps=3 7",
        ),
    ],
)
def test_a_request_is_one_command_line(request_: Request, arguments: str) -> None:
    assert request_of(json.loads(json.dumps(request_.document()))) == request_
    assert request_.arguments == arguments.split()


@pytest.mark.parametrize(
    "change",
    [
        {"command": "rm"},
        {"command": ["ps"]},
        {"pid": "7"},
        {"pid": 0},
        {"pid": -1},
        {"pid": 1 << 40},
        {"pid": True},
        {"options": {"record-command": ""}},
        {"options": {"name": 1}},
        {"options": {"name": "a\0b"}},
        {"options": {"name": "a" * 2000}},
        {"options": []},
        {"command": DOCTOR, "options": {"name": "a"}},
        {"giver": None},
    ],
)
def test_an_invalid_request_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        request_of({**Request(ATTACH, GIVER, 7).document(), **change})


@pytest.mark.parametrize("change", [{"status": "0"}, {"status": 256}, {"output": 1}, {"slug": None}, {"text": []}])
def test_an_invalid_reply_is_refused(change: dict[str, Any]) -> None:
    assert reply_of(Reply(3, "out").document()) == Reply(3, "out")
    with pytest.raises(RequestError):
        reply_of({**Reply().document(), **change})
