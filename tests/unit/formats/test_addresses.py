"""Addresses of collectors."""

import pytest
from tfprof.formats.addresses import collector_address, socket_file
from tfprof.formats.errors import FolderError

#: The longest path of a local socket on Linux (bytes).
LONGEST_PATH = 107


def test_a_collectors_address_is_a_socket_in_the_runtime_folder():
    assert socket_file(collector_address("/run/user/7/tfprof/0123")) == "/run/user/7/tfprof/0123/collector.sock"


def test_only_a_local_address_has_a_socket_file():
    assert socket_file("tcp://host:7000") is None


def test_a_path_too_long_for_a_socket_is_refused():
    longest_folder = "/" + "x" * (LONGEST_PATH - len("//collector.sock"))
    assert len(socket_file(collector_address(longest_folder))) == LONGEST_PATH
    with pytest.raises(FolderError, match="set XDG_RUNTIME_DIR"):
        collector_address(longest_folder + "x")
