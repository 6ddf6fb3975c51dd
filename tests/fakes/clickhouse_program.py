"""A server of ClickHouse on loopback, with a folder of its own: that of the Debian package."""

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from fakes import node_keys
from fakes.polling import until

#: Path of the program, empty without the package.
PROGRAM = shutil.which("clickhouse-server") or ""
_CONFIG = """<yandex>
<logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<listen_host>127.0.0.1</listen_host><http_port>{port}</http_port>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>{folder}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size><uncompressed_cache_size>0</uncompressed_cache_size>
</yandex>"""
_USERS = """<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users><quotas><default></default></quotas></yandex>"""


@contextlib.contextmanager
def running(folder: Path) -> Iterator[int]:
    """Run a server in the existing ``folder``, and provide its HTTP port."""
    port, config = node_keys.free_port(), folder / "config.xml"
    config.write_text(_CONFIG.format(folder=folder, port=port))
    (folder / "users.xml").write_text(_USERS)
    with subprocess.Popen([PROGRAM, f"--config-file={config}"], stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: _listens(port), "a server of ClickHouse", 30)
            yield port
        finally:
            process.kill()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
