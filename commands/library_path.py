"""The part of LD_LIBRARY_PATH that tfprof's own Python needs.

The variable is set for the job. A conda or CUDA folder in it could replace libraries that pyarrow,
DuckDB and ZeroMQ use. Some Pythons, however, find their own libraries, such as libpython, only
through this variable. A folder is therefore kept in two cases: this process has loaded libpython
from it, or has loaded a library from it that the system does not have.
"""

import os

LIBRARY_PATH = "LD_LIBRARY_PATH"
#: A file with the names of the system's libraries. Without it, as with musl, all folders are kept.
CACHE = "/etc/ld.so.cache"
MAPS = "/proc/self/maps"


def needed_folders(value: str) -> str:
    """Return the folders of ``value``, an LD_LIBRARY_PATH, that this Python needs."""
    if not value:
        return ""
    try:
        with open(CACHE, "rb") as file:
            cache = file.read()
        with open(MAPS, "rb") as file:
            mapped = {line.split(None, 5)[5].rstrip(b"\n") for line in file if b".so" in line and b" /" in line}
    except OSError:
        return value
    own_libraries = {path for path in mapped if _is_own(cache, os.path.basename(path))}
    folders = {os.path.realpath(os.path.dirname(path)) for path in map(os.fsdecode, own_libraries)}
    return os.pathsep.join(
        folder for folder in value.split(os.pathsep) if folder and os.path.realpath(folder) in folders
    )


def _is_own(cache: bytes, name: bytes) -> bool:
    """Return whether the file ``name`` is a libpython, or a library that the system lacks.

    A program loads the file libz.so.1.2.13 as libz.so.1. A libpython of the system belongs to
    another Python.
    """
    stem, _, version = name.partition(b".so")
    major = b".so" + b".".join(version.split(b".")[:2])
    is_in_cache = any(b"%s%s\0" % (stem, end) in cache for end in (b".so" + version, major))
    return name.startswith(b"libpython") or not is_in_cache
