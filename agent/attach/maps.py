"""Mapped files of a process, and the addresses of its interpreter's functions."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from .call import ProcessMemory
from .elf import Elf
from .errors import AttachError, RefusedError

_LIBPYTHON: Final = re.compile(r"/libpython(?:3|2)[^/]*\.so[^/]*\Z")
_LIBC: Final = re.compile(r"/(?:libc[.-][^/]*so[^/]*|ld-musl[^/]*|libc\.musl[^/]*)\Z")
_TENSORFLOW: Final = re.compile(r"/(?:_pywrap_tensorflow_(?:internal|common)|libtensorflow)[^/]*\Z")
_VERSION: Final = re.compile(r"python3\.(\d+)")
_DELETED: Final = " (deleted)"
#: mov $15, %rax; syscall: the C library's return from signal handlers.
_RESTORER: Final = b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"
_TEXT_MAX: Final = 64 << 20

#: Functions that CPython exports and that are called here.
PYTHON_FUNCTIONS: Final = frozenset(
    ("Py_AddPendingCall", "PyRun_SimpleString", "PyGILState_Check", "PyGILState_Ensure", "PyGILState_Release")
)
_SYSTEM_FUNCTIONS: Final = frozenset(("mmap", "mprotect"))


class MappedFile(NamedTuple):
    """One line of /proc/PID/maps that has a path."""

    start: int
    end: int
    executable: bool
    offset: int
    inode: int
    path: str


class NoPythonError(RefusedError):
    """A process without a CPython that exports its functions."""

    slug = "not-python"


class Functions(NamedTuple):
    """Addresses in a process: functions of Python, `mmap`, `mprotect`, and an `rt_sigreturn`."""

    python: Mapping[str, int]
    mmap: int
    mprotect: int
    restorer: int


def mappings(pid: int) -> Iterator[MappedFile]:
    """Yield the mapped files of process ``pid``; OSError if they may not be read."""
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.rstrip("\n").split(None, 5)
            if len(fields) == 6 and fields[5].startswith("/"):
                start, _, end = fields[0].partition("-")
                yield MappedFile(
                    int(start, 16), int(end, 16), "x" in fields[1], int(fields[2], 16), int(fields[4]), fields[5]
                )


def has_tensorflow(pid: int) -> bool:
    """Return whether process ``pid`` has TensorFlow loaded; OSError if that may not be read."""
    return any(_TENSORFLOW.search(each.path) for each in mappings(pid))


def python_version(pid: int) -> int | None:
    """Return the minor version of Python 3 in process ``pid``, None if no file name shows it."""
    found = [_VERSION.search(path) for path in (os.readlink(f"/proc/{pid}/exe"), *(one.path for one in mappings(pid)))]
    return next((int(match[1]) for match in found if match is not None), None)


def has_python(pid: int) -> bool:
    """Return whether process ``pid`` runs a CPython that exports its functions.

    OSError if the process may not be read.
    """
    mapped = list(mappings(pid))
    return any(_symbols(pid, mapped, path, PYTHON_FUNCTIONS) for path in _pythons(pid, mapped))


def _pythons(pid: int, mapped: list[MappedFile]) -> list[str]:
    """Return the files that may contain the interpreter: its library, or the program itself."""
    found = [path for path in dict.fromkeys(one.path for one in mapped) if _LIBPYTHON.search(path)]
    return [*found, os.readlink(f"/proc/{pid}/exe")]


def functions(pid: int, memory: ProcessMemory) -> Functions:
    """Return the functions of the interpreter in process ``pid``; NoPythonError if it has none."""
    mapped = list(mappings(pid))
    executable = os.readlink(f"/proc/{pid}/exe")
    for path in _pythons(pid, mapped):
        python = _symbols(pid, mapped, path, PYTHON_FUNCTIONS)
        if len(python) == len(PYTHON_FUNCTIONS):
            break
    else:
        raise NoPythonError(f"{executable} is no CPython that exports its functions")
    libraries = [path for path in dict.fromkeys(one.path for one in mapped) if _LIBC.search(path)]
    for path in (*libraries, executable):
        system = _symbols(pid, mapped, path, _SYSTEM_FUNCTIONS)
        restorer = _restorer(mapped, path, memory)
        if len(system) == len(_SYSTEM_FUNCTIONS) and restorer:
            return Functions(python, **system, restorer=restorer)
    raise AttachError("the process has no known C library", "not-python")


def _symbols(pid: int, mapped: list[MappedFile], path: str, wanted: frozenset[str]) -> dict[str, int]:
    """Return the addresses of those ``wanted`` symbols that the mapped file ``path`` defines.

    ``path`` is a path as the process sees it.
    """
    first = next((one for one in mapped if one.path == path), None)
    if first is None:
        return {}
    try:
        file = Elf(_place(pid, path))
    except (OSError, AttachError):
        return {}
    try:
        if file.inode != first.inode:
            return {}  # replaced since, for example by an upgrade: the process has other addresses
        return {name: first.start - first.offset + at for name, at in file.symbols(wanted).items()}
    except AttachError:
        return {}
    finally:
        file.close()


def _place(pid: int, path: str) -> str:
    """Return a path that opens the mapped file itself, even if it was deleted or replaced."""
    if path.endswith(_DELETED) and os.readlink(f"/proc/{pid}/exe") == path:
        return f"/proc/{pid}/exe"
    return f"/proc/{pid}/root{path.removesuffix(_DELETED)}"


def _restorer(mapped: list[MappedFile], path: str, memory: ProcessMemory) -> int | None:
    for one in mapped:
        if one.path == path and one.executable:
            at = memory.read(one.start, min(one.end - one.start, _TEXT_MAX)).find(_RESTORER)
            if at >= 0:
                return one.start + at
    return None
