"""The store and the runtime folder of a user, with one private instance folder for each store."""

from __future__ import annotations

import os
import stat

from .addresses import SOCKET, SOCKET_PATH_MAX, USER, Endpoint, is_remote, local_endpoint, remote_endpoint
from .errors import FolderError, UsageError
from .private_files import read_file

ANNOUNCE = "announce"  # one file for each channel, written by the shim: docs/channel.md
LAUNCHES = "launches"  # one JSON file for each launch
LIVE = "live.json"  # the current figures of the collector's running jobs
GIVEN_UP = "given-up"  # one JSON file for each ended job whose remaining data the agent has given up
_PATH_MAX = 4096
_STORE = "store"  # a file with the path of the instance's store


def store_path(path: str) -> str:
    """Return the absolute form of ``path``, a store that the user names.

    A store may also be the address of a collector on another host. UsageError when it is empty, no
    such address, or another URL. FolderError when the working folder is needed and does not exist.
    """
    if not path.strip():
        raise UsageError("the path of the store is empty (--store or TFPROF_STORE)")
    if is_remote(path):
        return remote_endpoint(path).url
    scheme, separator, _ = path.partition("://")
    if separator and scheme.isalnum():
        raise UsageError("%s is no folder: commands that show jobs take it with --store" % path, "folder-only")
    try:
        return os.path.abspath(os.path.expanduser(path))
    except OSError as error:
        raise FolderError(
            "the working folder, which %r is relative to, is gone: %s" % (path, error.strerror), "io"
        ) from None


def default_store() -> str:
    """Return the user's store: $TFPROF_COLLECTOR, else $TFPROF_STORE, else a folder for state.

    The path may be relative: see ``require_absolute``.
    """
    path = os.environ.get("TFPROF_COLLECTOR") or os.environ.get("TFPROF_STORE")
    return store_path(path) if path else os.path.join(state_home(), "tfprof")


def state_home() -> str:
    """Return the folder for the state of programs: $XDG_STATE_HOME, else ~/.local/state."""
    return os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")


def shared_endpoint(store: str) -> Endpoint | None:
    """Return the endpoint of the shared store in the folder ``store``, None if it is not one."""
    path = os.path.join(store, SOCKET)
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        return None
    try:
        return Endpoint(USER, path) if stat.S_ISSOCK(os.stat(path).st_mode) else None
    except (OSError, ValueError):
        return None


def endpoint_elsewhere(store: str) -> Endpoint | None:
    """Return the endpoint of ``store``, or None if a local collector of this user writes it."""
    return remote_endpoint(store) if is_remote(store) else shared_endpoint(store)


def require_absolute(store: str) -> str:
    """Return ``store``; FolderError if it is relative, because XDG_STATE_HOME or HOME is."""
    if not is_remote(store) and not os.path.isabs(store):
        name = "XDG_STATE_HOME" if os.environ.get("XDG_STATE_HOME") else "HOME"
        raise FolderError("%s is %r, which is not an absolute path" % (name, os.environ.get(name, "")))
    return store


def runtime_root() -> str:
    """Return the user's runtime folder.

    It is $XDG_RUNTIME_DIR/tfprof, else tfprof-UID in the temporary folder. FolderError if
    XDG_RUNTIME_DIR is relative or not a folder, or if there is no temporary folder.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and not os.path.isabs(base):
        raise FolderError("XDG_RUNTIME_DIR is %r, which is not an absolute path" % base)
    if base and os.path.exists(base) and not os.path.isdir(base):
        raise FolderError("XDG_RUNTIME_DIR is %r, which is not a folder" % base)
    if base:
        return os.path.join(base, "tfprof")
    import tempfile  # imported late: it takes a tenth of the launcher's start and is seldom needed

    try:
        return os.path.join(tempfile.gettempdir(), "tfprof-%d" % os.getuid())
    except OSError as error:
        raise FolderError("there is no temporary folder: %s" % error.strerror) from None


def instance_dir(store: str) -> str:
    """Return the instance folder of ``store``."""
    return os.path.join(runtime_root(), digest(_canonical(require_absolute(store))))


def _canonical(store: str) -> str:
    return store if is_remote(store) else os.path.realpath(store)


def digest(path: str) -> str:
    """Return the short hash of ``path`` that names what belongs to it."""
    import hashlib  # imported late: it is slow, and few commands need a runtime folder

    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def make_private(path: str, variable: str = "XDG_RUNTIME_DIR") -> str:
    """Create the folder ``path`` with mode 0700 if needed and return it.

    FolderError when that fails, or when the folder is not private to this user. ``variable`` is the
    environment variable that moves it.
    """
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        info = os.lstat(path)
    except OSError as error:
        raise FolderError("cannot create %s: %s" % (path, error.strerror)) from None
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        raise FolderError("%s is not a folder of yours: remove it, or set %s" % (path, variable))
    if info.st_mode & 0o077:
        raise FolderError("%s is open to other users: chmod 700 it" % path)
    return path


def make_instance(store: str) -> str:
    """Create the private instance folder of ``store`` with its sub-folders; return its path.

    FolderError when that fails, or when the path is too long for the collector's socket.
    """
    local_endpoint(instance_dir(store))
    make_private(runtime_root())
    folder = make_private(instance_dir(store))
    for name in (ANNOUNCE, LAUNCHES, GIVEN_UP):
        make_private(os.path.join(folder, name))
    _record_store(folder, _canonical(store))
    return folder


def _record_store(folder: str, store: str) -> None:
    path = os.path.join(folder, _STORE)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise FolderError("cannot write in %s: %s" % (folder, error.strerror)) from None
    try:
        os.write(fd, os.fsencode(store))
    except OSError as error:
        os.unlink(path)
        raise FolderError("cannot write in %s: %s" % (folder, error.strerror)) from None
    finally:
        os.close(fd)


def store_of(folder: str) -> str | None:
    """Return the store of the instance folder ``folder``, None if it is unknown."""
    data = read_file(os.path.join(folder, _STORE), _PATH_MAX)
    store = os.fsdecode(data) if data else None
    return store if store and digest(store) == os.path.basename(folder) else None
