"""Writes files for users: completely or not at all."""

import errno
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ..errors import TfprofError

_NEW_MODE: Final = 0o666
_PRIVATE_MODE: Final = 0o600
#: Errors of file systems and kernels that do not support files without a name.
_UNSUPPORTED: Final = frozenset({errno.EISDIR, errno.EOPNOTSUPP})
#: Paths with these beginnings name an open file of a process.
_OPEN_FILE_PREFIXES: Final = ("/dev/fd/", "/dev/stdout", "/dev/stderr", "/proc/")


def check_is_new(path: str | os.PathLike[str]) -> None:
    """Raise TfprofError ``file-exists`` if `write` would replace ``path``."""
    if Path(path).is_file() and not _is_open(os.fspath(path)):
        raise TfprofError(f"{os.fspath(path)} exists: --force replaces it", slug="file-exists")


def write(path: str | os.PathLike[str], data: bytes | Iterable[bytes]) -> None:
    """Write ``data``, whole or in pieces, to ``path``.

    Write into a device, a pipe or an open file of the process; replace any other file atomically.
    TfprofError ``io`` on failure.
    """
    pieces = (data,) if isinstance(data, bytes) else data
    try:
        target = Path(os.path.realpath(path))
    except ValueError as error:  # the name has a character that is not allowed
        raise _unwritable(path, error) from None
    try:
        if _is_special(os.fspath(path), target):
            with open(path, "wb") as file:  # noqa: PTH123  # the path as given: /dev/stdout may lead to an unnamed file
                file.writelines(pieces)
        else:
            _replace(target, pieces)
    except OSError as error:
        raise _unwritable(path, error.strerror or error) from None


def _unwritable(path: str | os.PathLike[str], reason: object) -> TfprofError:
    return TfprofError(f"cannot write {os.fspath(path)}: {reason}", slug="io")


def _is_special(path: str, target: Path) -> bool:
    """Return whether ``path`` is a device, a pipe or an open file of the process.

    ``target``: the file to which ``path`` leads.
    """
    return _is_open(path) or (target.exists() and not target.is_file())


def _is_open(path: str) -> bool:
    return path.startswith(_OPEN_FILE_PREFIXES)


def _replace(target: Path, pieces: Iterable[bytes]) -> None:
    """Write a new file, which has no name at first: a killed process leaves nothing behind."""
    temporary = target.parent / f".tfprof-{secrets.token_hex(8)}"
    try:
        descriptor, is_named = _new_file(temporary)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, _mode(target))
            file.writelines(pieces)
            file.flush()
            if not is_named:
                # With a folder's descriptor, `link` follows the link to the file.
                os.link(f"/proc/self/fd/{descriptor}", temporary, src_dir_fd=descriptor)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _new_file(path: Path) -> tuple[int, bool]:
    """Return the descriptor of a new file in the folder of ``path``, and whether it has that name.

    It has no name if the file system supports that.
    """
    try:
        return os.open(path.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, _PRIVATE_MODE), False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, _PRIVATE_MODE), True


def _mode(target: Path) -> int:
    """Return the permissions of ``target``, or those of a new file."""
    try:
        return target.stat().st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return _NEW_MODE & ~mask
