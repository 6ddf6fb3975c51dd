"""The URL of a store in ClickHouse, and the user and password for it.

Neither is in the URL: command lines and messages can be read by others.
"""

import os
import re
import stat
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from ...formats.errors import UsageError
from ...formats.private_files import open_regular
from ...formats.settings import SETTINGS
from ..errors import StoreError

SCHEME: Final = "clickhouse"
#: Protocol -> its default port at a server of ClickHouse.
_PORTS: Final = {"http": 8123, "https": 8443}
_DATABASE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
#: Environment variables of the user, the password, and a private file with the password. The
#: password is no setting: settings files can be read by others.
USER_VARIABLE: Final = SETTINGS["clickhouse-user"].variable
PASSWORD_VARIABLE: Final = "TFPROF_CLICKHOUSE_PASSWORD"  # noqa: S105  # a name
FILE_VARIABLE: Final = SETTINGS["clickhouse-password-file"].variable
_PASSWORD_MAX: Final = 4096
_FORM: Final = "clickhouse://HOST[:PORT]/DATABASE[?protocol=https]"


class Address(NamedTuple):
    """A database of a server."""

    host: str
    port: int
    database: str
    protocol: str = "http"

    @property
    def text(self) -> str:
        """The URL as it is shown."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        option = "" if self.protocol == "http" else f"?protocol={self.protocol}"
        return f"{SCHEME}://{host}:{self.port}/{self.database}{option}"


class Credentials(NamedTuple):
    """A user of the server."""

    user: str
    password: str


def parse(url: str) -> Address:
    """Return the address in ``url``; UsageError if it is invalid, or names a user or password."""
    if "@" in url.partition("?")[0]:
        raise UsageError(
            f"a URL of a store names neither user nor password, which others could read: "
            f"set {USER_VARIABLE}, and {FILE_VARIABLE} or {PASSWORD_VARIABLE}"
        )
    try:
        parts = urlsplit(url)
        options = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        protocol = options.pop("protocol", ["http"])[-1]
        port = parts.port or _PORTS[protocol]
        database = parts.path.strip("/")
        is_url = parts.scheme == SCHEME and bool(parts.hostname) and not parts.fragment
        is_valid = is_url and _DATABASE.fullmatch(database) and not options
    except (ValueError, KeyError):
        is_valid = False
    if not is_valid or not url.isprintable():
        raise UsageError(f"{url!r} is not the URL of a store: {_FORM}")
    return Address(str(parts.hostname), port, database, protocol)


def credentials() -> Credentials:
    """Return the user and the password from the settings; no password is an empty one.

    StoreError ``password-file`` if the file cannot be read, or if other users can read it.
    """
    user, path = SETTINGS["clickhouse-user"].read(), SETTINGS["clickhouse-password-file"].read()
    password = _password(Path(path).expanduser()) if path else os.environ.get(PASSWORD_VARIABLE, "")
    if not (user + password).isprintable():  # they become headers
        raise StoreError("the user or the password for ClickHouse has control characters", "password-file")
    return Credentials(user, password)


def _password(path: Path) -> str:
    """Return the first line of the file at ``path``."""
    try:
        descriptor = open_regular(str(path), os.O_RDONLY)
        try:
            if os.fstat(descriptor).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                text = f"{path} can be read or written by other users: run chmod 600 on it, and change the password"
                raise StoreError(text, "password-file")
            data = os.read(descriptor, _PASSWORD_MAX)
        finally:
            os.close(descriptor)
        return data.decode().partition("\n")[0].strip("\r")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise StoreError(f"cannot read the password in {path} ({FILE_VARIABLE}): {reason}", "password-file") from None
