"""Shared stores: the folder of each user in them, and who may read it.

The service that writes a shared store owns all of it. The access control list of a user's folder
lets the user and the members of one group read. New files inherit the list.
"""

import contextlib
import errno
import os
import pwd
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ...formats.ids import hex_id
from ..errors import StoreError
from .durable import make_folder, store_errors

#: The folder with the stores of users, which are named by the users' numbers.
USERS: Final = "users"
#: Mode of files that all users may read, and mode of folders that they may enter but not list.
LEGIBLE_FILE: Final = 0o644
PASSABLE_FOLDER: Final = 0o711

_ACCESS: Final = "system.posix_acl_access"
_DEFAULT: Final = "system.posix_acl_default"
#: Layout of a list: acl(5), and linux/posix_acl_xattr.h.
_VERSION: Final = struct.pack("<I", 2)
_ENTRY: Final = struct.Struct("<HHI")
_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_NO_ID: Final = 0xFFFFFFFF
_READ, _WRITE, _SEARCH = 4, 2, 1
_NO_LISTS: Final = (errno.ENOTSUP, errno.ENOSYS)


class Owner(NamedTuple):
    """The user whose jobs are in the folder ``root`` of a shared store."""

    uid: int
    root: Path

    @property
    def name(self) -> str:
        """The name of the user, or the number if there is no such account."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)

    def has_foreign_job(self, uid: int) -> bool:
        """Return whether another user has a job with the id ``uid``."""
        return any(
            (root / "jobs" / hex_id(uid)).exists()
            for root in roots(self.root.parents[1])
            if root.name != self.root.name
        )


def owner_of(store: Path) -> Owner | None:
    """Return the owner of ``store`` if that is a user's folder in a shared store, else None."""
    is_users = store.parent.name == USERS and store.name.isdecimal()
    return Owner(int(store.name), store) if is_users else None


def is_shared(store: Path) -> bool:
    """Return whether ``store`` is a shared store."""
    return _is_folder(store / USERS)


def roots(store: Path) -> list[Path]:
    """Return the folders with the jobs of ``store``: itself, or users' folders in a shared store.

    A user who may not list the users' folders gets only their own. Folders that cannot be read are
    left out.
    """
    users = store / USERS
    if not is_shared(store):
        return [store]
    try:
        names = sorted(path.name for path in users.iterdir() if path.name.isdecimal())
    except OSError:
        names = [str(os.geteuid())]
    return [users / name for name in names if _is_folder(users / name) and _is_readable(users / name)]


def share(store: Path, readers: int | None) -> None:
    """Let each user of the shared ``store`` read their folder, and the group ``readers`` all.

    StoreError ``store-acl`` if the filesystem has no access control lists.
    """
    users = store / USERS
    make_folder(users)
    with _list_errors(store):
        os.setxattr(users, _ACCESS, _list(None, readers, is_folder=True, others=_SEARCH))
        for root in users.iterdir():
            if root.name.isdecimal():
                _share_root(root, readers)


def make_root(store: Path, uid: int, readers: int | None) -> Path:
    """Return the folder of user ``uid`` in the shared ``store``; errors as for `share`."""
    root = store / USERS / str(uid)
    make_folder(root)
    with _list_errors(root):
        _share_root(root, readers)
    return root


def _share_root(root: Path, readers: int | None) -> None:
    """Set the lists of a user's folder and what is in it, unless they are set."""
    uid = int(root.name)
    of_folder, of_file = (_list(uid, readers, is_folder=is_folder) for is_folder in (True, False))
    if _has_list(root, of_folder):
        return
    os.setxattr(root, _DEFAULT, of_folder)
    if not _set_lists(root, of_folder, of_file):
        _set_lists(root, of_folder, of_file)  # files that were renamed meanwhile; new files inherit the lists
    os.setxattr(root, _ACCESS, of_folder)  # the last step: an interrupted run is repeated


def _set_lists(root: Path, of_folder: bytes, of_file: bytes) -> bool:
    """Set the lists of what is in ``root``.

    Return whether all paths still existed: a collector renames files.
    """
    is_complete = True
    for path in _content(root):
        is_folder = _is_folder(path)
        try:
            if is_folder:
                os.setxattr(path, _DEFAULT, of_folder)
            os.setxattr(path, _ACCESS, of_folder if is_folder else of_file)
        except FileNotFoundError:
            is_complete = False
    return is_complete


def _content(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(folder, name)
            if not path.is_symlink():
                yield path


def _has_list(root: Path, wanted: bytes) -> bool:
    try:
        return os.getxattr(root, _ACCESS) == wanted
    except OSError as error:
        if error.errno == errno.ENODATA:
            return False
        raise


def _list(uid: int | None, gid: int | None, *, is_folder: bool, others: int = 0) -> bytes:
    """Return a list that lets the user ``uid`` and the group ``gid`` read; None for nobody."""
    read = _READ | (_SEARCH if is_folder else 0)
    entries = [
        (_USER_OBJ, read | _WRITE, _NO_ID),
        *([] if uid is None else [(_USER, read, uid)]),
        (_GROUP_OBJ, 0, _NO_ID),
        *([] if gid is None else [(_GROUP, read, gid)]),
        (_MASK, read, _NO_ID),
        (_OTHER, others, _NO_ID),
    ]
    return _VERSION + b"".join(_ENTRY.pack(*entry) for entry in entries)


@contextlib.contextmanager
def _list_errors(path: Path) -> Iterator[None]:
    """Convert an OSError in the block into a StoreError about ``path``."""
    try:
        with store_errors(path):
            yield
    except StoreError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in _NO_LISTS:
            text = f"the filesystem of {path} has no access control lists, which keep the jobs of users apart"
            raise StoreError(f"{text}: use another --store", "store-acl") from None
        raise


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _is_readable(folder: Path) -> bool:
    return os.access(folder, os.R_OK | os.X_OK, effective_ids=True)
