"""Nobody but the page of this user gets anything from `tfprof web`, whatever is sent.

Tests cli/web.py, web/links.py, web/server/fence.py, web/server/forms.py, web/server/guard.py,
web/server/memory.py, web/server/serve.py.
"""

import json
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.hostile_store import JOB
from fakes.page_server import PageServer, page_server
from tfprof.web.server import serve
from tfprof.web.server.serve import BoundError, bind_socket

UID = f"{JOB:016x}"
DATA = f"/api/job/{UID}/show"
#: What every answer with data of the job contains.
SECRET = UID.encode()
PATHS = ["/", "/api/jobs", "/api/live", "/api/form", "/static/main.js", DATA, f"/api/job/{UID}/export/csv"]


@pytest.fixture(scope="module")
def port(store: Path, runtime: Path) -> Iterator[PageServer]:
    with page_server(store, runtime, "--port", "0") as running:
        yield running


def cookie(port: PageServer) -> str:
    answer = port.ask(port.link.partition(str(port.port))[2])
    assert answer.status == 303
    return answer.headers["set-cookie"].partition(";")[0]


def test_the_socket_is_private_from_its_first_moment(tmp_path: Path) -> None:
    modes = []
    path = str(tmp_path / "s")
    umask = os.umask

    def spy(mask: int) -> int:
        if os.path.exists(path):
            modes.append(stat.S_IMODE(os.stat(path).st_mode))
        return umask(mask)

    os.umask = spy
    try:
        with bind_socket(path):
            modes.append(stat.S_IMODE(os.stat(path).st_mode))
            with pytest.raises(BoundError, match=f"already; on your own machine: ssh -N -L 8080:{path} "):
                bind_socket(path)
    finally:
        os.umask = umask
    assert set(modes) == {0o600}


def test_a_path_at_which_nothing_can_be_served_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(tmp_path / "datagrams"))
        for name, reason in {
            "datagrams": "Protocol wrong type",
            "file/s": "Not a directory",
            "no/s": "No such",
        }.items():
            with pytest.raises(BoundError, match=f"cannot serve at {tmp_path / name}: {reason}"):
                bind_socket(str(tmp_path / name))


def test_the_socket_of_a_running_server_is_in_a_private_folder(server: PageServer) -> None:
    assert stat.S_IMODE(os.stat(server.socket).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(server.socket)).st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_cannot_connect(server: PageServer) -> None:
    connect = f"socket.socket(socket.AF_UNIX).connect({server.socket!r})"
    code = f"import os, socket; os.setgid(65534); os.setuid(65534); {connect}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "PermissionError" in result.stderr


def test_a_second_server_of_the_same_store_is_refused(server: PageServer, store: Path, runtime: Path) -> None:
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "TFPROF_STORE": str(store)}
    command = [sys.executable, "-m", "tfprof.cli.main", "web"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "[web-address]" in result.stderr
    assert server.ask("/api/jobs").status == 200


def test_the_socket_of_a_killed_server_is_replaced(store: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with page_server(store, tmp_path) as first:
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(30)
        assert os.path.exists(first.socket)
        with page_server(store, tmp_path) as second:
            assert second.ask("/api/jobs").status == 200
    assert not os.path.exists(second.socket)


def test_the_page_and_its_data_are_served(server: PageServer) -> None:
    for path in ("/", "/static/main.js", "/api/jobs", DATA, f"/job/{UID}", f"/job/{UID}/step/4", f"/diff/{UID}/{UID}"):
        answer = server.ask(path)
        assert answer.status == 200, path
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8080"},
        {"Host": "localhost.evil.example"},
        {"Host": "localhost:80:80"},
        {"Host": "127.0.0.2"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:81"},
        {"Origin": "https://localhost"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
@pytest.mark.parametrize("path", PATHS)
def test_requests_of_other_pages_are_refused(server: PageServer, path: str, headers: dict[str, str]) -> None:
    answer = server.ask(path, **{"Host": "localhost", **headers})
    assert answer.status == 403
    assert SECRET not in answer.body


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1:9", "LOCALHOST:1"])
def test_the_page_may_ask_through_a_tunnel(server: PageServer, host: str) -> None:
    answer = server.ask("/api/jobs", Host=host, Origin=f"http://{host}", Sec_Fetch_Site="same-origin")
    assert answer.status == 200
    assert SECRET in answer.body


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("value", ["", "{name}=", "{name}=guess", "{name}=é", "a=b; ;;=;", "\x00"])
def test_a_port_gives_nothing_without_the_secret(port: PageServer, path: str, value: str) -> None:
    value = value.format(name=cookie(port).partition("=")[0])
    raw = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: {value}\r\n\r\n"
    answer = port.send(raw.encode("latin-1"))
    assert answer.split()[1] in (b"403", b"400")
    assert SECRET not in answer


@pytest.mark.parametrize("token", ["", "x", "%ff%00", "a&token=b"])
def test_a_wrong_token_gives_nothing(port: PageServer, token: str) -> None:
    answer = port.ask(f"/?token={token}")
    assert answer.status == 403
    assert "set-cookie" not in answer.headers


def test_the_secret_becomes_a_cookie_and_leaves_the_address(port: PageServer) -> None:
    token = port.link.partition("token=")[2]
    assert len(token) >= 40
    answer = port.ask(f"/job/{UID}?kind=batch&token={token}")
    assert answer.status == 303
    assert answer.headers["location"] == f"/job/{UID}?kind=batch"
    attributes = answer.headers["set-cookie"]
    assert "HttpOnly" in attributes
    assert "SameSite=Strict" in attributes
    assert port.ask("/api/jobs", Cookie=cookie(port)).status == 200
    assert port.ask("//evil.example", Cookie="").status == 403
    moved = port.ask(f"//evil.example/?token={token}")
    assert moved.headers["location"] == "/evil.example/"


@pytest.mark.parametrize("other", ['theme={"mode": "dark"}', "a b=1", "=", "COOKIE"])
def test_cookies_of_other_ports_shut_nobody_out(port: PageServer, other: str) -> None:
    name = cookie(port).partition("=")[0]
    cookies = f"{other.replace('COOKIE', name)}; {cookie(port)}; other"
    assert port.ask("/api/jobs", Cookie=cookies).status == 200
    assert port.ask("/api/jobs", Cookie=f"{name}=x; x{cookie(port)}").status == 403


def test_two_hosts_with_the_same_port_have_different_cookies(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    monkeypatch.setattr(serve, "app", lambda _store, _give, _token, cookie: names.append(cookie))
    monkeypatch.setattr(serve, "run", lambda *_: None)
    with serve.bind_port(0) as bound:
        for host in ("node1", "node2", "node1"):
            monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
            serve.serve("store", bound, lambda *_: {}, lambda: None, "secret")
    assert names[0] == names[2] != names[1]


def test_a_cookie_does_not_help_another_page(port: PageServer) -> None:
    answer = port.ask("/api/jobs", Cookie=cookie(port), Origin="http://evil.example")
    assert answer.status == 403


@pytest.mark.parametrize(
    "path",
    [
        "/static/../__init__.py",
        "/static/%2e%2e/__init__.py",
        "/static/..%2f..%2fsetup.cfg",
        "/static//etc/passwd",
        "/static/vendor/lock.json",
        "/static/",
        "/static/%00",
        "/api/job/../jobs",
        f"/api/job/{UID}/%2e%2e/jobs",
        f"/api/job/{UID[:4]}/show",
        "/api/job/last/show",
        f"/api/job/{UID}/jobs",
        f"/api/job/{UID}/diff",
        f"/api/job/{UID}/export/none",
        f"/api/job/{UID}/export/..%2fcsv",
        "/api/job/0123456789abcdef/show",
        "/job/x",
        f"/job/{UID}/step/-1",
        "/no/such/page",
        f"/diff/{UID}/x",
    ],
)
def test_odd_paths_are_not_found(server: PageServer, path: str) -> None:
    assert server.ask(path).status == 404


@pytest.mark.parametrize(
    "query",
    [
        "no=1",
        "max_depth=x",
        "step=1&step=2",
        "steps=9-1",
        "steps=x",
        "kind=%00",
        "device=%5b",
        "order_by=x",
        "output=file",
    ],
)
def test_odd_parameters_are_errors_of_the_request(server: PageServer, query: str) -> None:
    answer = server.ask(f"/api/job/{UID}/op?{query}")
    assert answer.status == 400
    assert json.loads(answer.body)["error"]


def test_a_long_address_and_a_long_body_are_refused(server: PageServer) -> None:
    assert server.ask("/api/jobs?" + "x" * 5000).status == 414
    order = server.ask(f"/api/job/{UID}/order", "POST", b"x" * 100_000, content_type="application/json")
    assert order.status == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(server: PageServer, method: str) -> None:
    assert server.ask("/api/jobs", method).status == 405


def test_orders_need_a_new_token(server: PageServer) -> None:
    target, kind = f"/api/job/{UID}/order", {"content_type": "application/json"}

    def order(**form: object) -> int:
        return server.ask(target, "POST", json.dumps(form).encode(), **kind).status

    def token() -> str:
        return str(json.loads(server.ask("/api/form").body)["token"])

    assert server.ask(target).status in (404, 405)
    assert order() == 403
    assert order(token="guess", order="trace") == 403
    assert order(token=["x"], order="trace") == 403
    assert order(token=token(), order="rm -rf") == 400
    assert server.ask(target, "POST", b"[1]", **kind).status == 400
    assert server.ask(target, "POST", b"[" * 4000, **kind).status == 400
    form = json.dumps({"token": token(), "order": "trace"}).encode()
    assert server.ask(target, "POST", form, content_type="text/plain").status == 400
    assert server.ask(target, "POST", form, Sec_Fetch_Site="none", **kind).status == 403
    answer = server.ask(target, "POST", form, **kind)
    assert answer.status == 200
    assert json.loads(answer.body)["jobs"][0]["obeyed"] is False  # the job has ended
    assert server.ask(target, "POST", form, **kind).status == 403


def test_odd_bytes_get_neither_data_nor_an_error_of_the_server(server: PageServer) -> None:
    chance = random.Random(5)
    parts = [
        b"GET",
        b"POST",
        b" ",
        b"/",
        b"/api/jobs",
        DATA.encode(),
        b"HTTP/1.1",
        b"HTTP/9",
        b"\r\n",
        b"\n",
        b"Host: ",
        b"x",
    ]
    parts += [
        b"Content-Length: 5",
        b"Content-Length: -1",
        b"Transfer-Encoding: chunked",
        b"\x00",
        b"\xff",
        b":",
        b"?",
        b"%",
        b"Expect: 100-continue",
    ]
    for _ in range(300):
        data = b"".join(chance.choices(parts, k=chance.randrange(1, 25)))
        answer = server.send(data + b"\r\n\r\n" * chance.randrange(2))
        assert not answer.startswith(b"HTTP/1.1 5"), data
        assert SECRET not in answer, data
    assert server.ask("/api/jobs").status == 200


def test_a_client_that_sends_half_a_request_is_disconnected(server: PageServer) -> None:
    connection = server.connection()
    connection.connect()
    with connection.sock as stream:
        stream.settimeout(40)
        stream.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        start = time.monotonic()
        while stream.recv(65536):
            pass
        assert time.monotonic() - start < 30


def test_the_server_ends_with_viewers_connected(store: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with page_server(store, tmp_path) as running:
        connection = running.connection()
        connection.request("GET", "/api/live")
        events = connection.getresponse()
        assert events.readline() == b"event: problem\n"
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(20) == 0
    connection.close()
