"""Servers of ClickHouse on loopback, each with a folder of its own: those of the Debian package."""

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from fakes import node_keys
from fakes.forks import SERVER_PIDS
from fakes.polling import until

#: Path of the program, empty without the package.
PROGRAM = shutil.which("clickhouse-server") or ""
#: The hosts of the cluster `pair`. A server has one HTTP port on all hosts, and its own TCP port,
#: by which it tells its own address from that of the other server.
HOSTS = ("127.0.0.1", "127.0.0.2")
_CONFIG = """<yandex>
<logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<listen_host>{host}</listen_host><http_port>{port}</http_port><tcp_port>{tcp_port}</tcp_port>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>{folder}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size><uncompressed_cache_size>0</uncompressed_cache_size>
<remote_servers><pair>{shards}</pair></remote_servers>
</yandex>"""
_SHARD = "<shard><replica><host>{host}</host><port>{port}</port></replica></shard>"
_USERS = """<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles>
<users><default><password></password><networks><ip>127.0.0.0/8</ip></networks>
<profile>default</profile><quota>default</quota></default></users><quotas><default></default></quotas></yandex>"""


@contextlib.contextmanager
def running(folder: Path, hosts: Sequence[str] = HOSTS[:1]) -> Iterator[tuple[int, list[subprocess.Popen[bytes]]]]:
    """Run a server on each host in the existing ``folder``; provide their HTTP port, and them."""
    port, tcp_ports = node_keys.free_port(), [node_keys.free_port() for _ in hosts]
    shards = "".join(_SHARD.format(host=host, port=tcp_port) for host, tcp_port in zip(hosts, tcp_ports, strict=True))
    with contextlib.ExitStack() as servers:
        processes = []
        for host, tcp_port in zip(hosts, tcp_ports, strict=True):
            place = folder / host
            place.mkdir()
            config = place / "config.xml"
            config.write_text(_CONFIG.format(folder=place, host=host, port=port, tcp_port=tcp_port, shards=shards))
            (place / "users.xml").write_text(_USERS)
            command = [PROGRAM, f"--config-file={config}"]
            processes.append(servers.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL)))
            servers.callback(processes[-1].kill)
            SERVER_PIDS.add(processes[-1].pid)
            servers.callback(SERVER_PIDS.discard, processes[-1].pid)
        until(lambda: all(_listens(host, port) for host in hosts), "servers of ClickHouse", 30)
        yield port, processes


def _listens(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), 1):
        return True
    return False
