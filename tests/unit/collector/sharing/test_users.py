"""The users of a shared store: what each may hold, and a collector that does not start.

Tests collector/sharing/watch.py.
"""

import os
import pwd
import selectors
import socket
import subprocess
import sys

import pytest
from tfprof.agent.daemon_start import DaemonSupervisor
from tfprof.collector.sharing import users as module
from tfprof.collector.sharing import watch
from tfprof.collector.sharing.users import Users
from tfprof.collector.store import catalog
from tfprof.commands import daemons
from tfprof.commands.daemons import DaemonError
from tfprof.formats.addresses import local_endpoint
from tfprof.formats.private_files import write_json
from tfprof.formats.runtime_dir import instance_dir, make_instance


class Shared:
    """The users of the shared store `store`; their collectors do not start by themselves."""

    def __init__(self, store, monkeypatch):
        self.store = store
        self.uid = os.geteuid()
        self.log = []
        self.failure = None
        monkeypatch.setattr(DaemonSupervisor, "ensure_running", lambda _: False)
        monkeypatch.setattr(DaemonSupervisor, "failure", property(lambda _: self.failure))
        monkeypatch.setattr(module, "log", lambda text, **_: self.log.append(text))
        monkeypatch.setattr(module, "CREDENTIALS", self)
        catalog.make_shared(store, None)
        self.selector = selectors.DefaultSelector()
        self.users = Users(store, None, self.selector)
        self.clients = []
        self.listening = {}

    # Stands for the struct of credentials, so that one process can be several users.
    size = 12

    def unpack(self, _data):
        return 1, self.uid, 1

    def connect(self, uid, now=0.0):
        """Connect as user ``uid``; return the client's end."""
        self.uid = uid
        client, near = socket.socketpair()
        client.setblocking(False)
        self.clients.append(client)
        self.users.add(near, now)
        return client

    def listen(self, uid):
        """Be the collector of user ``uid``."""
        server = socket.socket(socket.AF_UNIX)
        server.bind(local_endpoint(make_instance(str(self.store / "users" / str(uid)))).place)
        server.listen()
        self.listening[uid] = server

    def close(self):
        self.users.close()
        for end in [*self.clients, *self.listening.values()]:
            end.close()
        self.selector.close()


@pytest.fixture
def shared(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("u")
    (folder / "r").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "r"))
    shared = Shared(folder / "s", monkeypatch)
    yield shared
    shared.close()


def test_the_number_of_a_user_may_have_32_bits():
    pid, uid, gid = (number.to_bytes(4, sys.byteorder) for number in (4711, 3_000_000_000, 7))
    assert module.CREDENTIALS.unpack(pid + uid + gid) == (4711, 3_000_000_000, 7)


def is_closed(client):
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False


def _is_empty(end):
    try:
        return not end.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True


def test_a_connection_waits_until_the_collector_has_started(shared):
    client = shared.connect(7)
    shared.users.tick(1.0)
    assert not is_closed(client)
    assert shared.users.are_waiting
    shared.listen(7)
    shared.users.tick(2.0)
    assert not shared.users.are_waiting
    assert not is_closed(client)
    assert (shared.store / "users/7").is_dir()
    assert os.path.isdir(instance_dir(str(shared.store / "users/7")))


def test_each_user_gets_the_own_collector(shared):
    shared.listen(7)
    shared.connect(7)
    shared.connect(8)
    shared.users.tick(1.0)
    assert shared.users.are_waiting, "user 8 has no collector, and does not get that of user 7"


def _received(shared, server):
    """Return what the collector that listens at ``server`` has got, by connection."""
    accepted = []
    server.setblocking(False)
    try:
        while True:
            accepted.append(server.accept()[0])
    except BlockingIOError:
        pass
    shared.clients += accepted
    for end in accepted:
        end.setblocking(False)
    return accepted


def test_a_user_with_many_events_delays_nobody_and_each_connection_has_its_turn(shared):
    for uid in (7, 8):
        shared.listen(uid)
    many, one = [shared.connect(7) for _ in range(30)], shared.connect(8)
    ends, (other,) = (_received(shared, server) for server in shared.listening.values())
    for client in [*many, one]:
        client.send(b"x")
    for turn in range(8):
        for key, _ in shared.selector.select(0):
            key.data.pass_on()
        assert not is_closed(other) if turn else other.recv(9) == b"x"
        passed = sum(not _is_empty(end) for end in ends)
        assert passed == min(30, module.EVENTS_A_TURN * (turn + 1))


def test_a_forgotten_user_is_served_again(shared, monkeypatch):
    monkeypatch.setattr(module, "_IDLE_MAX", 0)
    for uid in (7, 8, 7):
        if uid not in shared.listening:
            shared.listen(uid)
        client = shared.connect(uid)
        client.send(b"x")
        (end,) = _received(shared, shared.listening[uid])
        for key, _ in shared.selector.select(0):
            key.data.pass_on()
        assert end.recv(9) == b"x"
        client.close()
        for key, _ in shared.selector.select(0):
            key.data.pass_on()
    assert len(shared.selector.get_map()) == 1


def test_connections_are_closed_when_the_collector_does_not_start(shared):
    late = shared.connect(7, 0.0)
    shared.users.tick(module.START_S + 1)
    assert is_closed(late)
    shared.failure = {"text": "the disk is full", "slug": "store-full"}
    failed = shared.connect(8, 100.0)
    assert is_closed(failed)
    assert shared.log[-1].endswith(": no collector: the disk is full [store-full]")


def test_a_user_has_a_limited_number_of_connections_and_one_line_in_the_log(shared):
    clients = [shared.connect(7) for _ in range(module.CONNECTIONS_MAX + 5)]
    assert [is_closed(client) for client in clients] == [False] * module.CONNECTIONS_MAX + [True] * 5
    assert not is_closed(shared.connect(8))
    assert len(shared.log) == 1
    assert "more than 64 connections [user-limit]" in shared.log[0]


def test_the_numbers_of_users_and_of_strangers_are_limited(shared, monkeypatch):
    strangers = [shared.connect(500_000 + number) for number in range(module.STRANGERS_MAX + 1)]
    assert [is_closed(client) for client in strangers] == [False] * module.STRANGERS_MAX + [True]
    account = pwd.getpwuid(0)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: account)
    left = module.USERS_MAX - module.STRANGERS_MAX
    known = [shared.connect(1_000 + number) for number in range(left + 1)]
    assert [is_closed(client) for client in known] == [False] * left + [True]
    assert not is_closed(shared.connect(1_000)), "a user who is served already is served on"


def test_strangers_cannot_fill_the_store_with_folders(shared, monkeypatch):
    monkeypatch.setattr(module, "STRANGERS_FOLDERS_MAX", 2)
    clients = [shared.connect(500_000 + number) for number in range(3)]
    assert [is_closed(client) for client in clients] == [False, False, True]
    assert not is_closed(shared.connect(0)), "an account gets a folder all the same"


def test_a_user_whom_the_kernel_cannot_name_is_refused(shared):
    assert is_closed(shared.connect(65_534))
    assert not (shared.store / "users/65534").exists()


def test_the_error_of_a_start_closes_the_connection(shared, monkeypatch):
    def fail(_self):
        raise DaemonError("no process")

    monkeypatch.setattr(DaemonSupervisor, "ensure_running", fail)
    assert is_closed(shared.connect(7))
    assert "no process" in shared.log[0]


def test_a_collector_that_writes_no_status_is_killed_unless_it_is_starting(shared, monkeypatch):
    shared.listen(7)
    shared.connect(7)
    path = f"{instance_dir(str(shared.store / 'users/7'))}/collector.json"
    with subprocess.Popen(["sleep", "60"]) as process:
        monkeypatch.setattr(daemons, "running_pid", lambda *_: process.pid)
        times = iter(range(0, 10**6, 10**3))  # after a pause of the service, too, each check counts once
        for pid in (process.pid, process.pid, process.pid - 1):  # the last status is of an earlier process
            write_json(path, {"pid": pid})
            for _ in range(watch.CHECKS if pid == process.pid else 2 * watch.CHECKS):
                shared.users.tick(next(times))
            assert process.poll() is None
        assert shared.log == []
        write_json(path, {"pid": process.pid})
        for _ in range(watch.CHECKS + 1):
            shared.users.tick(next(times))
        assert process.wait(10) == -9
    assert f"the collector of process {process.pid} hung for 120 s, and was killed [collector]" in shared.log[0]
