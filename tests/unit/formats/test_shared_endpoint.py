"""Where jobs go: a shared store is told by the socket of its service."""

import socket

from tfprof.formats import runtime_dir


def test_a_shared_store_is_a_folder_with_the_socket_of_its_service(tmp_path):
    assert runtime_dir.endpoint_elsewhere(str(tmp_path)) is None
    (tmp_path / "collector.sock").write_text("")
    assert runtime_dir.shared_endpoint(str(tmp_path)) is None
    (tmp_path / "collector.sock").unlink()
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(str(tmp_path / "collector.sock"))
    endpoint = runtime_dir.endpoint_elsewhere(str(tmp_path))
    assert endpoint.url == f"ipc://{tmp_path}/collector.sock"
    assert (endpoint.is_own, endpoint.is_loopback, endpoint.socket_file) == (False, True, endpoint.place)
    assert runtime_dir.endpoint_elsewhere("tcp://head:7199").host == "head"
    assert runtime_dir.shared_endpoint(str(tmp_path / ("x" * 120))) is None
