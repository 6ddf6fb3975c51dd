"""Writes folders for users: completely or not at all."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..errors import TfprofError


class Folder(NamedTuple):
    """A folder that an exporter makes.

    ``name``: its path in the folder that the user names, empty for that one itself. ``files``: the
    path of each file in the folder, and its content in pieces. A file is read completely before the
    next one.
    """

    name: str
    files: Iterable[tuple[str, Iterable[bytes]]]


def check_is_new(path: str, folder: Folder) -> None:
    """Raise TfprofError ``file-exists`` if ``folder`` exists in ``path``, and is not empty."""
    target = Path(path, folder.name)
    with suppress(OSError, ValueError):
        if any(target.iterdir()):
            raise TfprofError(f"{target} exists: --force replaces it", slug="file-exists")


def write_folder(path: str, folder: Folder) -> None:
    """Write ``folder`` into ``path``; replace an existing folder as a whole.

    Nothing is left of it on failure. TfprofError ``io`` if it cannot be written, ``file-exists`` if
    ``path`` itself is to be replaced and has anything else in it.
    """
    made: list[Path] = []
    try:
        outer = Path(os.path.realpath(path))
    except ValueError as error:  # the name has a character that is not allowed
        raise _unwritable(path, folder, error) from None
    target = outer / folder.name
    try:
        for parent in reversed(target.parents):
            if not parent.exists():
                parent.mkdir()
                made.append(parent)
        # The files are not written beside the target: a program that watches the target's folder
        # would see an unfinished one.
        _replace(target, outer if folder.name else outer.parent, folder.files)
    except BaseException as error:
        for parent in reversed(made):
            with suppress(OSError):
                parent.rmdir()
        if isinstance(error, OSError):
            raise _unwritable(path, folder, error.strerror or error) from None
        raise


def _unwritable(path: str, folder: Folder, reason: object) -> TfprofError:
    return TfprofError(f"cannot write {Path(path, folder.name)}: {reason}", slug="io")


def _check_has_no_others(target: Path, staged: Path) -> None:
    """Raise TfprofError ``file-exists`` if ``target`` has files that ``staged`` has not."""
    others = sorted({entry.name for entry in target.iterdir()} - {entry.name for entry in staged.iterdir()})
    if others:
        text = f"{target} is not replaced: {others[0]} in it is not of this format. Name a new folder"
        raise TfprofError(text, slug="file-exists")


def _replace(target: Path, staging: Path, files: Iterable[tuple[str, Iterable[bytes]]]) -> None:
    """Write ``files`` into a hidden folder in ``staging``, and rename it to ``target``."""
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    staged, old = (staging / f".tfprof-{secrets.token_hex(8)}" for _ in range(2))
    staged.mkdir()
    try:
        for name, pieces in files:
            file = staged / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as opened:
                opened.writelines(pieces)
        if target.is_dir() and staging == target.parent:
            _check_has_no_others(target, staged)
        if target.is_dir():
            staged.chmod(target.stat().st_mode & 0o7777)
        try:
            if target.is_dir():
                target.rename(old)
            staged.rename(target)
        except BaseException:
            with suppress(OSError):
                old.rename(target)
            raise
    finally:
        for leftover in (staged, old):
            shutil.rmtree(leftover, ignore_errors=True)
