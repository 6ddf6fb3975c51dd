"""Where runtime files and data of a user lie: one instance for each store, private to its owner."""

from __future__ import annotations

import hashlib
import os
import stat

from .errors import TfprofError

ANNOUNCE = "announce"  # one file a channel, written by the shim: docs/channel.md
LAUNCHES = "launches"  # one JSON file a tfprof-run
COLLECTOR_SOCKET = "collector.sock"
_PATH_MAX = 4096
_STORE = "store"  # the path of the store that the folder is for


class PlaceError(TfprofError):
    """A folder of ours cannot be used: not ours, not private, or not writable."""

    slug = "runtime-dir"


def default_store() -> str:
    """Return the store folder of the user: $TFPROF_STORE, else under $XDG_STATE_HOME or ~/.local/state."""
    given = os.environ.get("TFPROF_STORE")
    if given:
        return os.path.abspath(given)
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "tfprof")


def runtime_root() -> str:
    """Return the folder of runtime files of this user: $XDG_RUNTIME_DIR/tfprof, else tfprof-UID under the temporary folder."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.path.isabs(base):
        return os.path.join(base, "tfprof")
    import tempfile  # a tenth of the launcher's start, seldom needed

    return os.path.join(tempfile.gettempdir(), "tfprof-%d" % os.getuid())


def instance_dir(store: str) -> str:
    """Return the runtime folder of the agent and the collector that serve ``store``; jobs of other stores are not theirs."""
    return os.path.join(runtime_root(), _digest(os.path.realpath(store)))


def _digest(path: str) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def make_private(path: str) -> str:
    """Create ``path`` with mode 0700 unless it is there, and return it; refuse one that others could write or own."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        info = os.lstat(path)
    except OSError as error:
        raise PlaceError("cannot create %s: %s" % (path, error.strerror)) from None
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        raise PlaceError("%s is not a folder of yours: remove it, or set XDG_RUNTIME_DIR" % path)
    if info.st_mode & 0o077:
        raise PlaceError("%s is open to other users: chmod 700 it" % path)
    return path


def make_instance(store: str) -> str:
    """Create the runtime folder of ``store`` with its sub-folders, all private, and return its path."""
    make_private(runtime_root())
    place = make_private(instance_dir(store))
    for name in (ANNOUNCE, LAUNCHES):
        make_private(os.path.join(place, name))
    _note_store(place, os.path.realpath(store))
    return place


def _note_store(place: str, store: str) -> None:
    try:
        fd = os.open(os.path.join(place, _STORE), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise PlaceError("cannot write in %s: %s" % (place, error.strerror)) from None
    try:
        os.write(fd, os.fsencode(store))
    finally:
        os.close(fd)


def store_of(place: str) -> str | None:
    """Return the path of the store that the runtime folder ``place`` is for, None where that is not known."""
    from .daemons import read_file  # which needs this module

    data = read_file(os.path.join(place, _STORE), _PATH_MAX)
    store = os.fsdecode(data) if data else None
    return store if store and _digest(store) == os.path.basename(place) else None
