"""Opens a store by its address, the path of a folder or a URL; each kind is loaded only then."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...formats import runtime_dir
from ..errors import UsageError
from .protocols import StoreReader

if TYPE_CHECKING:
    from .clickhouse_reader import EngineStore
    from .clickhouse_target import EngineTarget
    from .copying import FolderTarget

    StoreTarget = FolderTarget | EngineTarget


def scheme_of(address: str) -> str:
    """Return the scheme of ``address``, empty for a path."""
    scheme, separator, _ = address.partition("://")
    return scheme if separator and scheme.isalnum() else ""


def absolute(address: str) -> str:
    """Return the absolute form of a path; a URL stays as it is."""
    return address if scheme_of(address) else runtime_dir.store_path(address)


def open_reader(address: str | os.PathLike[str]) -> StoreReader:
    """Return a reader of the store at ``address``, a path or a URL.

    StoreError if it cannot be read, UsageError if the URL is invalid.
    """
    text = os.fspath(address)
    if _is_engine(text):
        return _engine(text)
    from .reader import LocalStore  # noqa: PLC0415

    return LocalStore(text)


def open_target(address: str) -> "StoreTarget":
    """Return the store at ``address``, a path or a URL, to copy jobs into it; errors as above."""
    if _is_engine(address):
        from .clickhouse_target import EngineTarget  # noqa: PLC0415

        return EngineTarget(_engine(address))
    from .copying import FolderTarget  # noqa: PLC0415

    return FolderTarget(address)


def create(url: str, keep_days: int, admins: Sequence[str], cluster: str = "", *, only_print: bool) -> list[str]:
    """Create the tables of the store at ``url``, and return the statements.

    ``keep_days``, ``admins``, ``cluster``: `clickhouse_tables.Rules`. ``only_print``: run nothing.
    UsageError if ``url`` is invalid, StoreError if a server refuses a statement.
    """
    _is_engine(url)
    from .clickhouse_address import credentials, parse  # noqa: PLC0415
    from .clickhouse_setup import create as create_tables  # noqa: PLC0415
    from .clickhouse_tables import Rules, statements  # noqa: PLC0415

    address, rules = parse(url), Rules(keep_days, admins, cluster)
    if not only_print:
        create_tables(address, credentials(), rules)
    return list(statements(address, rules))


def _is_engine(address: str) -> bool:
    """Whether a store is in ClickHouse; UsageError if the URL is of no kind of store."""
    scheme = scheme_of(address)
    if scheme not in ("", "clickhouse", "tcp"):  # a folder's error says what to do with tcp://
        raise UsageError(f"{scheme}:// is not a kind of store: there are folders and clickhouse://")
    return scheme == "clickhouse"


def _engine(address: str) -> "EngineStore":
    from .clickhouse_address import credentials, parse  # noqa: PLC0415
    from .clickhouse_reader import EngineStore  # noqa: PLC0415
    from .clickhouse_server import Server  # noqa: PLC0415

    return EngineStore(Server(parse(address), credentials()))
