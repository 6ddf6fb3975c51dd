"""The identity and the folders with which root attaches to a user's job."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tfprof.agent.attach import identities, targets
from tfprof.agent.attach.errors import RefusedError

NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]
NOBODY = 65534
REFUSED_STATUS = 7
FOLDERS = {"HOME": "/home/inside", "XDG_RUNTIME_DIR": "/run/inside", "TFPROF_STORE": "/inside"}


@contextmanager
def process(prefix: Sequence[str]) -> Iterator[int]:
    command = [*prefix, "sh", "-c", "echo && read line"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | FOLDERS) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        yield child.pid
        child.stdin.close()


def skip_without_namespaces() -> None:
    completed = subprocess.run([*NAMESPACE, "true"], capture_output=True, text=True, check=False)
    if completed.returncode:
        pytest.skip(f"no other namespaces here: {completed.stderr.strip()}")


def test_the_folders_of_a_job_are_used() -> None:
    with process([]) as pid:
        environment = identities._environment(pid, os.getuid())
    assert {name: environment[name] for name in FOLDERS} == FOLDERS


def test_the_folders_of_a_job_in_a_container_are_not_used() -> None:
    skip_without_namespaces()
    with process(NAMESPACE) as pid:
        environment = identities._environment(pid, os.getuid())
    assert not set(FOLDERS.values()) & set(environment.values())


def test_a_namespace_is_that_of_a_container_if_another_user_created_it() -> None:
    skip_without_namespaces()
    with process([]) as outside, process(NAMESPACE) as inside:
        assert not identities._is_container_user(outside, os.getuid() + 1)
        assert not identities._is_container_user(inside, os.getuid())
        assert identities._is_container_user(inside, os.getuid() + 1)


#: Takes on another identity, sets whether it is dumpable, and waits.
OTHER_USER = """
import ctypes, os, sys
os.setgroups([])
os.setresuid(*[int(sys.argv[1])] * 3)
ctypes.CDLL(None).prctl(4, int(sys.argv[2]), 0, 0, 0)  # PR_SET_DUMPABLE
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root takes on another identity")
@pytest.mark.parametrize(("is_dumpable", "user"), [(1, NOBODY), (0, None)])
def test_root_stays_root_for_a_process_that_its_user_cannot_open(is_dumpable: int, user: int | None) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_USER, str(NOBODY), str(is_dumpable)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        job.stdout.readline()
        assert identities.user_to_become([job.pid]) == user
        assert targets.refusal_of(job.pid) is None
        job.stdin.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root takes on another identity")
@pytest.mark.parametrize(("path", "status"), [("/bin/sh", 0), ("{}", REFUSED_STATUS)])
def test_a_user_who_cannot_read_the_installation_is_refused(
    path: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private_file = tmp_path / "private"
    private_file.touch(0o600)
    monkeypatch.setattr(identities, "INSTALLATION", ((path.format(private_file), os.R_OK),))
    parent = os.getpid()
    try:
        child_status = identities.as_user(NOBODY, parent, lambda _: os._exit(0), dict)
    except RefusedError as error:
        os._exit(REFUSED_STATUS if error.slug == "installation-unreadable" else 1)
    finally:
        if os.getpid() != parent:  # the child must not run the other tests
            os._exit(1)
    assert child_status == status


@contextmanager
def served(answer: identities.RequestHandler) -> Iterator[socket.socket]:
    """Yield the user's end of a connection to a thread that answers requests by ``answer``."""
    root_end, user_end = socket.socketpair()
    thread = threading.Thread(target=identities._serve, args=(root_end, NOBODY, answer))
    thread.start()
    yield user_end
    user_end.close()
    thread.join()
    root_end.close()


def echo(request: dict[str, Any]) -> dict[str, Any]:
    return {"text": request["action"], "user": request["user_id"]}


def test_the_reply_to_a_request_whose_wait_was_interrupted_is_skipped() -> None:
    with served(echo) as connection:
        connection.sendall(json.dumps({"number": 1, "action": "arm"}).encode() + b"\n")
        reply = identities._send_request(connection, {"number": 2, "action": "disarm"})
    assert (reply["text"], reply["user"]) == ("disarm", NOBODY)


def test_a_request_that_is_no_json_gets_a_reply() -> None:
    with served(echo) as connection:
        connection.sendall(b"{")
        assert identities._send_request(connection, {"number": 2, "action": "arm"})["text"] == "an unknown request"


def test_a_user_who_has_ended_ends_the_service_without_an_error() -> None:
    root_end, user_end = socket.socketpair()
    user_end.sendall(b'{"number": 1, "action": "arm"}\n')
    user_end.close()
    identities._serve(root_end, NOBODY, echo)
    root_end.close()
