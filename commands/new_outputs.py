"""Checks of the files of `-o` that are possible before there is a job to write."""

from __future__ import annotations

import errno
import os
from importlib.util import find_spec

from ..formats.errors import UsageError
from ..formats.exports import FORMATS, Exporter, exporter_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: In names of files: the name and the short id of the job, which are known at its end.
NAME, ID = "{name}", "{id}"


def is_installed(exporter: Exporter) -> bool:
    """Return whether the package that ``exporter`` needs is installed."""
    return not exporter.package or find_spec(exporter.package) is not None


def check_installed(exporter: Exporter) -> None:
    """Raise UsageError if ``exporter`` needs a package that is not installed."""
    if not is_installed(exporter):
        raise UsageError(
            f"the format {exporter.name} needs the extra {exporter.extra} (pip install 'tfprof[{exporter.extra}]')"
        )


def no_format_error(path: str, hint: str = "") -> UsageError:
    """Return the error for a name that tells no format; ``hint``: another way to name one."""
    suffixes = " ".join(suffix for row in FORMATS.values() for suffix in row.suffixes)
    return UsageError(
        f"the name {path} does not tell the format: end it with one of {suffixes}{hint}", slug="no-such-format"
    )


def problems(paths: Sequence[str]) -> Iterator[UsageError]:
    """Yield why new files and folders could not be written now.

    The slug is ``file-exists`` for an existing file, or a folder that is not empty, ``io`` if the
    place cannot be written, else that of the format.
    """
    for number, path in enumerate(paths):
        if path in paths[:number]:
            yield UsageError(f"{path} is named twice")
        try:
            _check(path)
        except UsageError as error:
            yield error
        except (OSError, ValueError) as error:  # ValueError: the name has a character that is not allowed
            reason = error.strerror if isinstance(error, OSError) else error
            yield UsageError(f"cannot write {path}: {reason}", "io")


def _check(path: str) -> None:
    exporter = exporter_of(path)
    if exporter is None:
        raise no_format_error(path)
    check_installed(exporter)
    parent, name = os.path.split(path.rstrip(os.sep))
    if NAME in parent or ID in parent:
        return
    while exporter.is_folder and parent and not os.path.lexists(parent):  # the folder is created
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
