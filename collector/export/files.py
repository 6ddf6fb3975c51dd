"""Files that a user asks for: whole or not at all."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ..errors import TfprofError

_EVERYONE: Final = 0o666


def write(path: str | os.PathLike[str], data: bytes | Iterable[bytes]) -> None:
    """Make ``data``, whole or in pieces, the content of ``path``, or put it into the device or pipe that is there.

    TfprofError ``io`` when that fails.
    """
    pieces = (data,) if isinstance(data, bytes) else data
    try:
        target = Path(os.path.realpath(path))
        if _is_special(os.fspath(path), target):
            with open(path, "wb") as file:  # noqa: PTH123  # as it was given: /dev/stdout may be a file without a name
                file.writelines(pieces)
        else:
            _replace(target, pieces)
    except (OSError, ValueError) as error:  # the latter of a name with a character that no name has
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise TfprofError(f"cannot write {os.fspath(path)}: {why}", slug="io") from None


def _is_special(given: str, target: Path) -> bool:
    """Whether a file of this name is written into, not replaced: a device, a pipe, or what a process has open."""
    return given.startswith(("/dev/", "/proc/")) or (target.exists() and not target.is_file())


def _replace(target: Path, pieces: Iterable[bytes]) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, _mode(target))
            file.writelines(pieces)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink()
        raise


def _mode(target: Path) -> int:
    """Return the permissions of ``target``, or those that a new file gets."""
    try:
        return target.stat().st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return _EVERYONE & ~mask
