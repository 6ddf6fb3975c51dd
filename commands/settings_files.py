"""Settings from files (docs/settings.md).

The environment overrides the user's file, and the user's file overrides the host's. Launcher,
daemons and commands read the files. A job gets the values in its environment.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from ..formats.errors import TfprofError, UsageError
from ..formats.runtime_dir import default_store, store_path
from ..formats.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HOST_FILE = "/etc/tfprof/config.toml"
FILE_MAX = 64 << 10
#: Settings that are read from the environment only: they concern one job.
NOT_IN_FILES = frozenset(["run", "raise"])

#: Variables of this process that a file has set, with the path of the file.
paths_by_variable: dict[str, str] = {}


class SettingsFileError(UsageError):
    """A settings file that cannot be used; the message names the file and an invalid key."""

    slug = "settings-file"


def user_folder() -> str:
    """Return the folder of the user's settings, a relative path if HOME is relative."""
    base = os.environ.get("XDG_CONFIG_HOME") or ""
    if not os.path.isabs(base):  # the XDG specification: relative paths are ignored
        base = os.path.expanduser("~/.config")
    return os.path.join(base, "tfprof")


def paths() -> list[str]:
    """Return the paths of the settings files, highest precedence first."""
    folder = user_folder()
    user_files = [os.path.join(folder, "config.toml")] if os.path.isabs(folder) else []
    return [*user_files, HOST_FILE]


def load_into_environment() -> dict[str, str]:
    """Set the variables that have a value in a file and none in the environment; return them.

    A second call reads the files again. SettingsFileError if a file is invalid.
    """
    environ = os.environ
    for variable in paths_by_variable:
        environ.pop(variable, None)
    paths_by_variable.clear()
    added_values = {}
    for path, texts in [(path, read(path)) for path in paths()]:
        for name, text in texts.items():
            variable = SETTINGS[name].variable
            if not environ.get(variable):
                environ[variable] = added_values[variable] = text
                paths_by_variable[variable] = path
    return added_values


def store() -> str:
    """Return the store that the environment or a file names, else the default store."""
    load_into_environment()
    return default_store()


def store_without_side_effects() -> str:
    """Return what `store` returns, without changes to the environment.

    The environment belongs to the program that uses tfprof as a library.
    """
    for row in (SETTINGS["collector"], SETTINGS["store"]):
        texts = [text for path in paths() if (text := read(path).get(row.name))]
        if os.environ.get(row.variable) or texts:
            return default_store() if os.environ.get(row.variable) else store_path(row.parse(texts[0]))
    return default_store()


def without_file_values(environ: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ`` without the values from files: a daemon reads the files itself."""
    return {name: text for name, text in environ.items() if name not in paths_by_variable}


def read(path: str) -> dict[str, str]:
    """Return the settings in the file ``path`` as texts by name, empty if there is no such file."""
    data = _content(path)
    if data is None:
        return {}
    import tomllib  # imported late, since few users have such a file

    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise SettingsFileError("%s is not TOML: %s" % (path, error)) from None
    return {name: _text(path, name, value) for name, value in document.items()}


def _content(path: str) -> bytes | None:
    """Return the bytes of the regular file ``path``; None if it is missing or cannot be reached.

    Links are followed. SettingsFileError if the file cannot be used.
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # no permission to search a folder above it
        return None
    except OSError as error:
        raise SettingsFileError("%s cannot be read: %s" % (path, error.strerror)) from None
    if not stat.S_ISREG(mode):  # opening a device may have side effects
        raise SettingsFileError("%s is not a regular file" % path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:  # removed meanwhile
        return None
    except OSError as error:
        raise SettingsFileError("%s cannot be read: %s" % (path, error.strerror)) from None
    try:
        with os.fdopen(fd, "rb", 0) as file:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise SettingsFileError("%s is not a regular file" % path)
            if info.st_uid not in (0, os.geteuid()) or info.st_mode & stat.S_IWOTH:
                raise SettingsFileError("%s belongs to another user, or any user can write it" % path)
            data = file.read(FILE_MAX + 1)
    except OSError as error:
        raise SettingsFileError("%s cannot be read: %s" % (path, error.strerror)) from None
    if len(data) > FILE_MAX:
        raise SettingsFileError("%s has more than %d bytes" % (path, FILE_MAX))
    return data


def _text(path: str, name: str, value: object) -> str:
    """Return ``value`` as text, as in the environment variable of the setting ``name``."""
    row = SETTINGS.get(name)
    if row is None:
        raise SettingsFileError("%s: %s is not a setting" % (path, name))
    if name in NOT_IN_FILES:
        raise SettingsFileError("%s: %s is set in the environment only" % (path, name))
    if not isinstance(value, (str, int, float)):
        raise SettingsFileError("%s: %s is neither text, number, nor true or false" % (path, name))
    text = str(value)
    if not text.strip() or not text.isprintable():
        raise SettingsFileError("%s: %s is empty or not printable" % (path, name))
    try:
        parsed = row.parse(text)
        _CHECKS.get(name, _check_nothing)(parsed)
    except TfprofError as error:
        raise SettingsFileError("%s: %s: %s" % (path, name, error.args[0])) from None
    except ValueError as error:
        raise SettingsFileError("%s: %s: %s" % (path, name, error)) from None
    return text


def _check_nothing(value: Any) -> None:
    del value


def _check_trace(value: str) -> None:
    from ..formats.policy import Policy  # imported late, here and below: few files have such a setting

    Policy.from_text(value, SETTINGS["trace-level"].default)


def _check_level(value: str) -> None:
    from ..formats.policy import Policy

    Policy.from_text(SETTINGS["trace"].default, value)


def _check_ring(value: int) -> None:
    from ..formats import layout

    if not layout.RING_MIN <= value <= layout.RING_MAX:
        raise ValueError("not a size from 1M to 1G")


def _check_path(value: str) -> None:
    if not os.path.isabs(os.path.expanduser(value)):
        raise ValueError("%r is not an absolute path" % value)


def _check_collector(value: str) -> None:
    from ..formats.addresses import remote_endpoint

    remote_endpoint(value)


#: Checks of parsed values, in addition to the setting's parser.
_CHECKS: dict[str, Callable[[Any], None]] = {
    "trace": _check_trace,
    "trace-level": _check_level,
    "ring": _check_ring,
    "store": _check_path,
    "clickhouse-password-file": _check_path,
    "collector": _check_collector,
}
