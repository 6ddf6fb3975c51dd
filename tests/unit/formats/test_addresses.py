"""Endpoints of collectors."""

import pytest
from tfprof.formats.addresses import is_remote, local_endpoint, remote_endpoint
from tfprof.formats.errors import FolderError, UsageError

#: The longest path of a local socket on Linux (bytes).
LONGEST_PATH = 107


def test_a_local_endpoint_is_a_socket_in_the_runtime_folder():
    endpoint = local_endpoint("/run/user/7/tfprof/0123")
    assert endpoint.socket_file == "/run/user/7/tfprof/0123/collector.sock"
    assert endpoint.url == "ipc:///run/user/7/tfprof/0123/collector.sock"
    assert endpoint.is_loopback


def test_a_path_too_long_for_a_socket_is_refused():
    longest_folder = "/" + "x" * (LONGEST_PATH - len("//collector.sock"))
    assert len(local_endpoint(longest_folder).socket_file) == LONGEST_PATH
    with pytest.raises(FolderError, match="set XDG_RUNTIME_DIR"):
        local_endpoint(longest_folder + "x")


def test_a_remote_endpoint_is_a_host_and_a_port():
    endpoint = remote_endpoint("tcp://head:7199")
    assert (endpoint.url, endpoint.host, endpoint.socket_file) == ("tcp://head:7199", "head", None)
    assert not endpoint.is_loopback
    assert is_remote("tcp://head:7199")
    assert not is_remote("/data/tcp")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_loopback_is_told_by_name(host):
    assert remote_endpoint(f"tcp://{host}:1").is_loopback


@pytest.mark.parametrize(
    "text",
    ["", "head:7199", "tcp://head", "tcp://:7199", "tcp://head:0", "tcp://head:65536", "tcp://head:9999999999",
     "tcp://a b:1", "tcp://::1:7199", "tcp://h/x:1", "tcp://h;1.2.3.4:1", "ipc://x", "tcp://head:x"],
)  # fmt: skip
def test_other_texts_are_refused(text):
    with pytest.raises(UsageError, match="tcp://head:7199"):
        remote_endpoint(text)
