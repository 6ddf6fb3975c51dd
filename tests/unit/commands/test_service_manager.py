"""A service manager hears when a service is ready, reloads, lives and ends."""

import os
import socket

import pytest
from tfprof.commands.service_manager import ServiceManager
from tfprof.formats.errors import TfprofError


@pytest.fixture
def manager_socket(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.setblocking(False)
        yield receiver


def messages(receiver):
    found = []
    while True:
        try:
            found.append(receiver.recv(1000).decode())
        except BlockingIOError:
            return found


def test_it_hears_of_start_reload_and_end_and_children_cannot_speak(manager_socket):
    environ = {"NOTIFY_SOCKET": manager_socket.getsockname(), "PATH": "/bin"}
    manager = ServiceManager(environ)
    assert environ == {"PATH": "/bin"}
    manager.ready("serves /s")
    manager.reload("serves /s", lambda: None)
    manager.stopping()
    ready, reloading, ready_again, stopping = messages(manager_socket)
    assert (ready, stopping) == ("READY=1\nSTATUS=serves /s", "STOPPING=1")
    assert reloading.startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert ready_again == ready


def test_the_status_names_a_refused_setting_until_the_next_reload(manager_socket):
    manager = ServiceManager({"NOTIFY_SOCKET": manager_socket.getsockname()})

    def refuse():
        raise TfprofError("keep-days\nis not a number")

    manager.reload("serves /s", refuse)
    manager.reload("serves /s", lambda: None)
    _, refused, _, fine = messages(manager_socket)
    assert refused == "READY=1\nSTATUS=serves /s; the settings stay as they were: keep-days is not a number [internal]"
    assert fine == "READY=1\nSTATUS=serves /s"


def test_an_abstract_socket_works_too():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0tfprof-test-{os.getpid()}")
        ServiceManager({"NOTIFY_SOCKET": f"@tfprof-test-{os.getpid()}"}).stopping()
        assert receiver.recv(100) == b"STOPPING=1"


@pytest.mark.parametrize(
    ("pid", "is_watched"), [(str, True), (os.getpid, True), (lambda: 1, False)], ids=["any", "own", "other"]
)
def test_the_watchdog_hears_of_it_each_half_interval(manager_socket, pid, is_watched):
    environ = {"NOTIFY_SOCKET": manager_socket.getsockname(), "WATCHDOG_USEC": "4000000", "WATCHDOG_PID": str(pid())}
    manager = ServiceManager(environ)
    manager.alive(1e9)
    for later_s in (1.9, 2.1, 2.2):
        manager.alive(1e9 + later_s)
    assert messages(manager_socket) == ["WATCHDOG=1"] * 2 * is_watched


@pytest.mark.parametrize("address", ["", "/nowhere/at/all", "@", "a\0b", "x" * 5_000])
def test_nobody_there_is_no_error(address):
    manager = ServiceManager({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "soon"})
    manager.ready("serves")
    manager.alive(1e9)


def test_a_manager_that_does_not_read_is_not_waited_for(manager_socket):
    manager = ServiceManager({"NOTIFY_SOCKET": manager_socket.getsockname()})
    for _ in range(5_000):
        manager.stopping()
    assert 0 < len(messages(manager_socket)) < 5_000
