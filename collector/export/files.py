"""Writes files for users: completely or not at all."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ..errors import TfprofError

_NEW_MODE: Final = 0o666
#: Beginnings of paths that name an open file of a process.
_OPEN_FILE_PREFIXES: Final = ("/dev/fd/", "/dev/stdout", "/dev/stderr", "/proc/")


def write(path: str | os.PathLike[str], data: bytes | Iterable[bytes]) -> None:
    """Write ``data``, whole or in pieces, to ``path``.

    Write into a device, a pipe or an open file of the process; replace any other file atomically.
    TfprofError ``io`` on failure.
    """
    pieces = (data,) if isinstance(data, bytes) else data
    try:
        target = Path(os.path.realpath(path))
        if _is_special(os.fspath(path), target):
            with open(path, "wb") as file:  # noqa: PTH123  # the path as given: /dev/stdout may lead to an unnamed file
                file.writelines(pieces)
        else:
            _replace(target, pieces)
    except (OSError, ValueError) as error:  # ValueError: the name has a character that is not allowed
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise TfprofError(f"cannot write {os.fspath(path)}: {reason}", slug="io") from None


def _is_special(path: str, target: Path) -> bool:
    """Return whether ``path`` is a device, a pipe or an open file of the process.

    ``target``: the file to which ``path`` leads.
    """
    return path.startswith(_OPEN_FILE_PREFIXES) or (target.exists() and not target.is_file())


def _replace(target: Path, pieces: Iterable[bytes]) -> None:
    descriptor, temporary_path = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, _mode(target))
            file.writelines(pieces)
        Path(temporary_path).replace(target)
    except BaseException:
        Path(temporary_path).unlink()
        raise


def _mode(target: Path) -> int:
    """Return the permissions of ``target``, or those of a new file."""
    try:
        return target.stat().st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return _NEW_MODE & ~mask
