"""What is known about the files of `-o` before there is a job to write."""

from __future__ import annotations

import errno
import os
from importlib.util import find_spec

from ..formats.errors import UsageError
from ..formats.exports import FORMATS, Exporter, exporter_of

#: In names of files: the name and the short id of the job, which are known at its end.
NAME, ID = "{name}", "{id}"


def check_installed(exporter: Exporter) -> None:
    """Raise UsageError if ``exporter`` needs a package that is not installed."""
    if exporter.package and find_spec(exporter.package) is None:
        raise UsageError(
            f"the format {exporter.name} needs the extra {exporter.extra} (pip install 'tfprof[{exporter.extra}]')"
        )


def no_format_error(path: str, hint: str = "") -> UsageError:
    """Return the error for a name that tells no format; ``hint``: what else would help."""
    suffixes = " ".join(suffix for row in FORMATS.values() for suffix in row.suffixes)
    return UsageError(
        f"the name {path} does not tell the format: end it with one of {suffixes}{hint}", slug="no-such-format"
    )


def problem_of(path: str) -> UsageError | None:
    """Return why a new file or folder ``path`` could not be written now, None if it could.

    The slug is ``file-exists`` for an existing file, or a folder that is not empty, ``io`` if the
    place cannot be written, else that of the format.
    """
    try:
        _check(path)
    except UsageError as error:
        return error
    except (OSError, ValueError) as error:  # ValueError: the name has a character that is not allowed
        reason = error.strerror if isinstance(error, OSError) else error
        return UsageError(f"cannot write {path}: {reason}", "io")
    return None


def _check(path: str) -> None:
    exporter = exporter_of(path)
    if exporter is None:
        raise no_format_error(path)
    check_installed(exporter)
    parent, name = os.path.split(path.rstrip(os.sep))
    if NAME in parent or ID in parent:
        return
    while exporter.is_folder and parent and not os.path.lexists(parent):  # it is made
        parent = os.path.dirname(parent)
    parent = parent or os.curdir
    if not os.path.lexists(parent):
        raise UsageError(f"cannot write {path}: there is no folder {parent}", "io")
    if not os.path.isdir(parent):
        raise NotADirectoryError(errno.ENOTDIR, f"{parent} is not a folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"no permission to write in {parent}")
    if not (NAME in name or ID in name):
        _check_target(path, exporter)


def _check_target(path: str, exporter: Exporter) -> None:
    """Raise UsageError or OSError if ``path`` exists and must not be replaced."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return
    if os.path.isdir(path) != exporter.is_folder:
        raise UsageError(f"cannot write {path}: it is {'no' if exporter.is_folder else 'a'} folder", "io")
    if os.path.isfile(path) or (exporter.is_folder and os.listdir(path)):
        raise UsageError(f"{path} exists: remove it, or give another name", "file-exists")
