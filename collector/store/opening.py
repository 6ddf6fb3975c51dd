"""Opens a store by its address, the path of a folder or a URL. One table has the kinds."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ...formats import runtime_dir
from ..errors import UsageError
from .protocols import StoreReader

if TYPE_CHECKING:
    from .clickhouse_reader import EngineStore
    from .clickhouse_target import EngineTarget
    from .copying import FolderTarget

    StoreTarget = FolderTarget | EngineTarget


class _Kind(NamedTuple):
    """How a store of one kind is opened: for questions, and for copies of jobs."""

    reader: Callable[[str], StoreReader]
    target: Callable[[str], "StoreTarget"]


def _folder_reader(address: str) -> StoreReader:
    from .reader import LocalStore  # noqa: PLC0415  # each kind of store is loaded when it is opened

    return LocalStore(address)


def _folder_target(address: str) -> "FolderTarget":
    from .copying import FolderTarget  # noqa: PLC0415

    return FolderTarget(address)


def _engine_reader(address: str) -> "EngineStore":
    from .clickhouse_address import credentials, parse  # noqa: PLC0415
    from .clickhouse_reader import EngineStore  # noqa: PLC0415
    from .clickhouse_server import Server  # noqa: PLC0415

    return EngineStore(Server(parse(address), credentials()))


def _engine_target(address: str) -> "EngineTarget":
    from .clickhouse_target import EngineTarget  # noqa: PLC0415

    return EngineTarget(_engine_reader(address))


#: Scheme of the URL -> kind of store; a folder has no scheme.
_KINDS: Final = {
    "": _Kind(_folder_reader, _folder_target),
    "clickhouse": _Kind(_engine_reader, _engine_target),
    # The collector of another host: the error says where to ask.
    "tcp": _Kind(_folder_reader, _folder_target),
}


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
    return _kind(os.fspath(address)).reader(os.fspath(address))


def open_target(address: str) -> "StoreTarget":
    """Return the store at ``address``, a path or a URL, to copy jobs into it; errors as above."""
    return _kind(address).target(address)


def create(url: str, keep_days: int, admins: Sequence[str], cluster: str = "", *, only_print: bool) -> list[str]:
    """Create the tables of the store at ``url``, and return the statements.

    ``keep_days``, ``admins``, ``cluster``: `clickhouse_tables.Rules`. ``only_print``: run nothing.
    UsageError if ``url`` is invalid, StoreError if a server refuses a statement.
    """
    _kind(url)
    from .clickhouse_address import credentials, parse  # noqa: PLC0415
    from .clickhouse_setup import create as create_tables  # noqa: PLC0415
    from .clickhouse_tables import Rules, statements  # noqa: PLC0415

    address, rules = parse(url), Rules(keep_days, admins, cluster)
    if not only_print:
        create_tables(address, credentials(), rules)
    return list(statements(address, rules))


def _kind(address: str) -> _Kind:
    kind = _KINDS.get(scheme_of(address))
    if kind is None:
        raise UsageError(f"{scheme_of(address)}:// is not a kind of store: there are folders and clickhouse://")
    return kind
