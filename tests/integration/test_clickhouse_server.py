"""A server of ClickHouse 18.16, which Debian has: it is too old, and the error says so.

The test needs the Debian package clickhouse-server; without it, it is skipped.
"""

from pathlib import Path

import pytest
from fakes import clickhouse_program
from tfprof.collector.errors import StoreError
from tfprof.collector.store.opening import create, open_reader


@pytest.mark.skipif(not clickhouse_program.PROGRAM, reason="clickhouse-server is not installed")
def test_an_old_server_is_refused(tmp_path: Path) -> None:
    with clickhouse_program.running(tmp_path) as port:
        url = f"clickhouse://127.0.0.1:{port}/default"
        for ask in (lambda: create(url, 0, (), only_print=False), lambda: open_reader(url)):
            with pytest.raises(StoreError, match=r"needs ClickHouse 22\.8 or later.*\[engine-version\]") as refused:
                ask()
            assert str(refused.value).isprintable()
