"""Things that a path may lead to instead of a readable file with valid content."""

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "file").write_text("in it")


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def _socket(path: Path) -> None:
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as end:  # the whole path is too long for a socket
        end.bind(path.name)


def _unreadable(path: Path) -> None:
    path.write_text("{")
    path.chmod(0)


#: Name of each kind -> a function that makes it at a path.
ODD_FILES: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "folder": _folder,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path),
    "dangling": lambda path: path.symlink_to("nowhere"),
    "sparse": _sparse,
    "deep": lambda path: path.write_text("[" * 200_000),
    "unreadable": _unreadable,
    "socket": _socket,
}
