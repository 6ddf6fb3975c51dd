"""Atomic writes of private files, in folders that only their owner can change."""

import contextlib
import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import StoreError

_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
#: Errors of reading that do not mean that a file is damaged.
_UNREADABLE_ERRNOS = (errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_MODE = 0o600
_FOLDER_MODE = 0o700
#: Permissions of the group for a new file and a new folder, if others may read the folder above.
_READ, _READ_AND_SEARCH = 0o040, 0o050
_DEFAULT_ACL = "system.posix_acl_default"
#: Flags to open a file for writing: do not follow a symbolic link, do not wait for the reader of a
#: pipe.
_SAFE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class FileId(NamedTuple):
    """The id of a file or folder. A new file of the same name has another id."""

    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "FileId | None":
        """Return the id of the file at ``path``, None if there is none."""
        try:
            status = path.stat()
        except OSError:
            return None
        return cls(status.st_dev, status.st_ino)


def make_folder(path: Path, *, may_be_link: bool = False) -> None:
    """Create the private folder ``path`` and its parents unless it exists; StoreError on failure.

    Others may read it if the access control list of the folder above lets them read its content.

    An existing folder must belong to this user, and nobody else may have write permission
    (``store-foreign``). It may be a symbolic link only if ``may_be_link``, and the link must belong
    to this user or to root.
    """
    with store_errors(path):
        path.mkdir(mode=_FOLDER_MODE | (_READ_AND_SEARCH & _shared_bits(path)), parents=True, exist_ok=True)
        link = path.lstat()
        status = path.stat() if may_be_link else link
    if not stat.S_ISDIR(status.st_mode):
        raise StoreError(f"{path} is a symbolic link: remove it, or use another --store", "store-foreign")
    owners = {status.st_uid, *([link.st_uid] if link.st_uid else [])} - {os.geteuid()}  # root's links are harmless
    if owners:
        text = f"{path} belongs to user {min(owners)}, who could make tfprof overwrite other files of yours"
        raise StoreError(f"{text}: use another --store", "store-foreign")
    foreign_write = stat.S_IWOTH | (0 if _is_private(status.st_gid) else stat.S_IWGRP)
    if status.st_mode & foreign_write:
        text = f"{path} can be written by others, who could make tfprof overwrite other files of yours"
        raise StoreError(f"{text}: run chmod go-w on it, or use another --store", "store-foreign")


def _is_private(group: int) -> bool:
    """Whether this user is the only member of ``group``.

    If so, the group's write permission is harmless.
    """
    try:
        user, members = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return group == user.pw_gid and members.gr_name == user.pw_name and set(members.gr_mem) <= {user.pw_name}


def open_own(path: Path, flags: int) -> int:
    """Open or create a file for writing, and return its descriptor.

    StoreError ``store-foreign`` unless it is a regular file of this user without further hard
    links.
    """
    descriptor = os.open(path, flags | os.O_CREAT | _SAFE_FLAGS, _MODE | (_READ & _shared_bits(path)))
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_nlink <= 1:
        return descriptor
    os.close(descriptor)
    raise StoreError(f"{path} is not a file of yours: remove it, or use another --store", "store-foreign")


def _shared_bits(path: Path) -> int:
    """Return the mode bits that the folder of ``path`` shares with new files, 0 if it is private.

    A folder is shared if it has a default access control list, and is itself open to those on the
    list. The bits only limit what the list grants: nobody else gets a permission.
    """
    try:
        mode = path.parent.stat().st_mode
        return _READ_AND_SEARCH if mode & _READ_AND_SEARCH and os.getxattr(path.parent, _DEFAULT_ACL) else 0
    except OSError:  # there is no list, or no such folder
        return 0


def unreadable_error(path: Path, error: Exception) -> StoreError:
    """Return the StoreError for ``error``, which was raised when ``path`` was read."""
    if isinstance(error, OSError) and error.errno in _UNREADABLE_ERRNOS:
        return StoreError(f"cannot read {path}: {error.strerror}", "store-unreadable")
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return StoreError(f"{path} is damaged: {reason.splitlines()[0]}", "store-damaged")


@contextlib.contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Convert an OSError in the block into a StoreError about ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ELOOP:
            text = f"{path} is a symbolic link: remove it, or use another --store"
            raise StoreError(text, "store-foreign") from error
        slug = "store-full" if error.errno in _FULL_ERRNOS else "store-unwritable"
        raise StoreError(f"cannot write {path}: {error.strerror or error}", slug) from error


def replace(path: Path, data: bytes | memoryview) -> None:
    """Replace the content of ``path`` atomically.

    After an OSError the content is unchanged, and no temporary file is left.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    mode = _MODE | (_READ & _shared_bits(path))
    descriptor = os.open(temporary, os.O_WRONLY | os.O_EXCL | os.O_CREAT | _SAFE_FLAGS, mode)
    try:
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of ``data`` at the descriptor's position, in as many calls as needed."""
    unwritten = memoryview(data).cast("B")
    while unwritten:
        unwritten = unwritten[os.write(descriptor, unwritten) :]


def open_folder(path: Path) -> int:
    """Return a descriptor of the folder ``path``, to sync or lock it; OSError if there is none."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def sync_folder(path: Path) -> None:
    """Sync folder ``path``, so that renames and removals in it survive a crash of the machine."""
    descriptor = open_folder(path)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
