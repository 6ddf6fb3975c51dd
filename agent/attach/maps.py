"""Mapped files of a process, and the addresses of its interpreter's functions."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from . import remote_debugging
from .elf import Image
from .errors import AttachError, RefusedError
from .memory import ProcessMemory

_LIBPYTHON: Final = re.compile(r"/libpython(?:3|2)[^/]*\.so[^/]*\Z")
_LIBC: Final = re.compile(r"/(?:libc[.-][^/]*so[^/]*|ld-musl[^/]*|libc\.musl[^/]*)\Z")
_TENSORFLOW: Final = re.compile(r"/(?:_pywrap_tensorflow_(?:internal|common)|libtensorflow)[^/]*\Z")
#: File names that show the version of Python, the most reliable first: of the program, of an
#: extension module with a tag, of the library, of a file in a folder with the version.
_VERSIONS: Final = (
    re.compile(r"/python3\.(\d+)m?\Z"),
    re.compile(r"\.cpython-3(\d+)[^/]*\Z"),
    re.compile(r"/libpython3\.(\d+)[^/]*\Z"),
    re.compile(r"/python3\.(\d+)/"),
)
#: mov $15, %rax; syscall: the C library's return from signal handlers.
_RESTORER: Final = b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"
_TEXT_MAX: Final = 64 << 20

#: Functions that CPython exports and that are called here.
PYTHON_FUNCTIONS: Final = frozenset(
    (
        "Py_AddPendingCall",
        "PyErr_CheckSignals",
        "PyGILState_Check",
        "PyGILState_Ensure",
        "PyGILState_Release",
        "PyRun_SimpleString",
    )
)
#: The function that runs Python code. It may be missing.
_EVALUATION: Final = "_PyEval_EvalFrameDefault"
_SYSTEM_FUNCTIONS: Final = frozenset(("mmap", "mprotect"))
#: A type that every CPython exports. Its flags tell whether the interpreter is initialized. A
#: process may contain several interpreters of which only one runs, as when an extension module is
#: linked with libpython. Calling a function of another interpreter crashes the process.
_TYPE: Final = "PyCell_Type"
#: Offsets of the flags: in usual builds, and in builds whose objects are larger.
_FLAGS_AT: Final = (168, 184)
_READY_FLAGS: Final = 1 << 12 | 1 << 14  # Py_TPFLAGS_READY | Py_TPFLAGS_HAVE_GC
_FLAGS_MAX: Final = 1 << 32


class MappedFile(NamedTuple):
    """One line of /proc/PID/maps that has a path."""

    start: int
    end: int
    is_executable: bool
    offset: int
    inode: int
    path: str


class NoPythonError(RefusedError):
    """The process has no CPython that exports its functions."""

    slug = "not-python"


class Functions(NamedTuple):
    """Addresses in a process: symbols of Python, `mmap`, `mprotect`, and an `rt_sigreturn`.

    ``runtime`` is the interpreter's state, which contains the GIL. ``code`` is the interpreter's
    machine code, and ``evaluation`` the function in it that runs Python code. ``runtime`` and
    ``evaluation`` are empty if they are not exported.
    """

    python: Mapping[str, int]
    runtime: range
    code: range
    evaluation: range
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
    return any(_TENSORFLOW.search(file.path) for file in mappings(pid))


def python_version(pid: int) -> int | None:
    """Return the minor version of the Python 3 that process ``pid`` runs.

    None if no file name shows it.
    """
    paths = [os.readlink(f"/proc/{pid}/exe"), *(file.path for file in mappings(pid))]
    matches = (match for pattern in _VERSIONS for path in paths if (match := pattern.search(path)) is not None)
    return next((int(match[1]) for match in matches), None)


def has_python(pid: int) -> bool:
    """Return whether process ``pid`` runs a CPython that exports its functions.

    OSError if the process may not be read.
    """
    memory = ProcessMemory(pid)
    try:
        return _interpreter(pid, list(mappings(pid)), memory) is not None
    finally:
        memory.close()


def _interpreter(pid: int, mapped_files: list[MappedFile], memory: ProcessMemory) -> Mapping[str, range] | None:
    """Return the symbols of the interpreter that runs in the process, None if there is none."""
    names = PYTHON_FUNCTIONS | {_TYPE}
    for path in _interpreter_files(pid, mapped_files):
        symbols = _symbols(mapped_files, path, names | {remote_debugging.RUNTIME, _EVALUATION}, memory)
        if names <= symbols.keys() and _is_initialized(memory, symbols[_TYPE].start):
            return symbols
    return None


def _is_initialized(memory: ProcessMemory, type_at: int) -> bool:
    flags = (int.from_bytes(memory.read(type_at + offset, 8), "little") for offset in _FLAGS_AT)
    return any(value & _READY_FLAGS == _READY_FLAGS and value < _FLAGS_MAX for value in flags)


def _interpreter_files(pid: int, mapped_files: list[MappedFile]) -> list[str]:
    """Return the files that may contain the interpreter: the program itself, or a library."""
    libraries = [path for path in dict.fromkeys(file.path for file in mapped_files) if _LIBPYTHON.search(path)]
    return [os.readlink(f"/proc/{pid}/exe"), *libraries]


def functions(pid: int, memory: ProcessMemory) -> Functions:
    """Return the functions of the interpreter in process ``pid``; NoPythonError if it has none."""
    mapped_files = list(mappings(pid))
    executable = os.readlink(f"/proc/{pid}/exe")
    python = _interpreter(pid, mapped_files, memory)
    if python is None:
        raise NoPythonError(f"{executable} runs no CPython whose functions can be found")
    libraries = [path for path in dict.fromkeys(file.path for file in mapped_files) if _LIBC.search(path)]
    for path in (*libraries, executable):
        system_functions = _symbols(mapped_files, path, _SYSTEM_FUNCTIONS, memory)
        restorer = _restorer(mapped_files, path, memory)
        if len(system_functions) == len(_SYSTEM_FUNCTIONS) and restorer:
            return Functions(
                _starts(python),
                python.get(remote_debugging.RUNTIME, range(0)),
                _code(mapped_files, python["PyRun_SimpleString"].start),
                python.get(_EVALUATION, range(0)),
                **_starts(system_functions),
                restorer=restorer,
            )
    raise AttachError("the process has no known C library", "not-python")


def _starts(symbols: Mapping[str, range]) -> Mapping[str, int]:
    return {name: addresses.start for name, addresses in symbols.items()}


def _symbols(
    mapped_files: list[MappedFile], path: str, names: frozenset[str], memory: ProcessMemory
) -> Mapping[str, range]:
    """Return the addresses of the symbols ``names`` of the mapped file at ``path``.

    Only a mapping as a program or library counts: there Python's functions are in executable
    memory. Empty if the file has no such mapping.
    """
    for file in mapped_files:
        if file.path == path and not file.offset:
            try:
                addresses = Image(memory, file.start).symbols(names)
            except (OSError, AttachError):
                continue  # mapped as data: not a loaded program or library
            if all(
                _is_code(mapped_files, path, symbol.start)
                for name, symbol in addresses.items()
                if name in PYTHON_FUNCTIONS
            ):
                return addresses
    return {}


def _code(mapped_files: list[MappedFile], address: int) -> range:
    """Return the mapping with the function at ``address``."""
    return next(range(file.start, file.end) for file in mapped_files if file.start <= address < file.end)


def _is_code(mapped_files: list[MappedFile], path: str, address: int) -> bool:
    return any(file.is_executable and file.path == path and file.start <= address < file.end for file in mapped_files)


def _restorer(mapped_files: list[MappedFile], path: str, memory: ProcessMemory) -> int | None:
    for file in mapped_files:
        if file.path == path and file.is_executable:
            offset = memory.read(file.start, min(file.end - file.start, _TEXT_MAX)).find(_RESTORER)
            if offset >= 0:
                return file.start + offset
    return None
