"""Files with CURVE keys: the collector's pair, the public keys of its nodes, and a node's pair.

=================  ========  ===================================================================
file               on        content
=================  ========  ===================================================================
`collector.json`   the head  the collector's pair; secret
`nodes.json`       the head  the name and the public key of each node that may send
`collector.key`    a node    the node's name and pair, and the collector's public key; secret
=================  ========  ===================================================================

All are JSON, readable by their owner only. Keys are in Z85 (40 characters).
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import TYPE_CHECKING, Any, NamedTuple

from ..formats.errors import TfprofError, UsageError
from ..formats.private_files import open_regular
from . import settings_files

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The value of the setting `collector-key` that turns encryption off.
NO_KEY = "none"
_KEYS = "keys"
_COLLECTOR = "collector.json"
_NODES = "nodes.json"
_NODE_KEY = "collector.key"
_FILE_MAX = 1 << 20
#: A key in Z85: of its 85 characters, none is a quote or a space.
_KEY = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
_NAME = re.compile(r"[0-9A-Za-z]([0-9A-Za-z._-]{0,62}[0-9A-Za-z])?")


class KeyFileError(TfprofError):
    """A file with a key that is missing, invalid, or readable by others."""

    slug = "key-file"


class KeyPair(NamedTuple):
    """A public key and its secret."""

    public: str
    secret: str


class NodeKey(NamedTuple):
    """The content of a node's file: its name at the collector, its pair, the collector's key."""

    node: str
    pair: KeyPair
    collector: str


def folder() -> str:
    """Return the folder of the collector's keys, below the folder of the user's settings."""
    return os.path.join(settings_files.user_folder(), _KEYS)


def node_key_path(setting: str) -> str:
    """Return the path of a node's key file: ``setting``, or the default if that is empty."""
    return os.path.expanduser(setting) if setting else os.path.join(settings_files.user_folder(), _NODE_KEY)


def node_name(text: str) -> str:
    """Return the name of a node; UsageError unless it is a host name."""
    if not _NAME.fullmatch(text):
        raise UsageError("%r is not a name for a node: give a host name" % text)
    return text


def write_collector(pair: KeyPair) -> str:
    """Make the folder and the collector's key file, which must not exist; return its path."""
    os.makedirs(folder(), mode=0o700, exist_ok=True)
    path = os.path.join(folder(), _COLLECTOR)
    write_new(path, pair._asdict())
    return path


def collector_pair() -> KeyPair:
    """Return the collector's pair; KeyFileError if there is none."""
    path = os.path.join(folder(), _COLLECTOR)
    return _pair(path, _read(path, "tfprof keys init makes it"))


def write_node_key(path: str, key: NodeKey) -> None:
    """Write a node's key file, which must not exist."""
    write_new(path, {"node": key.node, **key.pair._asdict(), "collector": key.collector})


def node_key(path: str) -> NodeKey:
    """Return the key in a node's file; KeyFileError if it cannot be used."""
    values = _read(path, "`tfprof keys add NODE` on the collector's host makes it")
    if not isinstance(values.get("node"), str) or not _NAME.fullmatch(values["node"]):
        raise KeyFileError("%s has no name of a node" % path)
    return NodeKey(values["node"], _pair(path, values), _key(path, values, "collector"))


def nodes() -> dict[str, str]:
    """Return the public key of each node by name; KeyFileError if the file is invalid."""
    path = os.path.join(folder(), _NODES)
    if not os.path.lexists(path):
        return {}
    values = _read(path, "")
    return {node: _key(path, values, node) for node in sorted(values)}


def nodes_mark() -> tuple[int, int]:
    """Return a value that changes with the file of the nodes; zeros while there is no file."""
    try:
        info = os.stat(os.path.join(folder(), _NODES))
    except OSError:
        return 0, 0
    return info.st_ino, info.st_mtime_ns


def change_nodes(node: str, public: str | None) -> None:
    """Store the key of a node, or remove the node; KeyFileError or OSError on failure."""
    import fcntl  # imported late: daemons only read

    path = os.path.join(folder(), _NODES)
    lock = open_regular(path + ".lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known_nodes = {name: key for name, key in nodes().items() if name != node}
        temporary = "%s.%d.tmp" % (path, os.getpid())
        write_new(temporary, known_nodes | ({} if public is None else {node: public}))
        os.replace(temporary, path)
    finally:
        os.close(lock)


def write_new(path: str, values: Mapping[str, str]) -> None:
    """Write ``values`` to the new file ``path`` with mode 0600, whatever the umask.

    KeyFileError if it exists, OSError on any other failure.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise KeyFileError("%s exists already" % path, "file-exists") from None
    with os.fdopen(fd, "w") as file:
        os.fchmod(fd, 0o600)
        file.write(json.dumps(values, indent=1) + "\n")
        file.flush()
        os.fsync(fd)


def _read(path: str, hint: str) -> dict[str, Any]:
    """Return the content of a key file; ``hint`` is a sentence that says how to make one."""
    try:
        fd = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        raise KeyFileError("there is no %s: %s" % (path, hint)) from None
    except OSError as error:
        raise KeyFileError("%s cannot be used: %s" % (path, error.strerror)) from None
    with os.fdopen(fd, "rb") as file:
        if stat.S_IMODE(os.fstat(fd).st_mode) & 0o077:
            raise KeyFileError("%s is open to other users: chmod 600 it" % path)
        data = file.read(_FILE_MAX)
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise KeyFileError("%s is not a file of `tfprof keys`" % path)
    return values


def _pair(path: str, values: dict[str, Any]) -> KeyPair:
    return KeyPair(_key(path, values, "public"), _key(path, values, "secret"))


def _key(path: str, values: dict[str, Any], name: str) -> str:
    key = values.get(name)
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise KeyFileError("%s: %s is not a key" % (path, name))
    return key
