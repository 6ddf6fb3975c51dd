"""The part of LD_LIBRARY_PATH that tfprof's own Python needs.

The variable is the job's: a conda or CUDA folder in it would replace libraries of pyarrow, DuckDB
and ZeroMQ. But some Pythons find their own libraries, such as libpython, only with it. So a folder
is kept if this process has loaded libpython from it, or a library that the system does not have.
"""

import os

LIBRARY_PATH = "LD_LIBRARY_PATH"
#: The libraries that the system has, by name. Where it is missing, as with musl, all is kept.
_CACHE = "/etc/ld.so.cache"
_MAPS = "/proc/self/maps"


def needed(value: str) -> str:
    """Return the folders of ``value``, an LD_LIBRARY_PATH, that this Python needs."""
    if not value:
        return ""
    try:
        with open(_CACHE, "rb") as file:
            known = file.read()
        with open(_MAPS, "rb") as file:
            mapped = {line.split(None, 5)[5].rstrip(b"\n") for line in file if b".so" in line and b" /" in line}
    except OSError:
        return value
    own = {path for path in mapped if _is_own(known, os.path.basename(path))}
    folders = {os.path.realpath(os.path.dirname(path)) for path in map(os.fsdecode, own)}
    return os.pathsep.join(
        folder for folder in value.split(os.pathsep) if folder and os.path.realpath(folder) in folders
    )


def _is_own(known: bytes, name: bytes) -> bool:
    """Whether Python finds the library in the file ``name`` only with LD_LIBRARY_PATH.

    A file libz.so.1.2.13 is loaded as libz.so.1. The system's libpython is that of another Python.
    """
    stem, _, version = name.partition(b".so")
    first = b".so" + b".".join(version.split(b".")[:2])
    is_known = any(b"%s%s\0" % (stem, end) in known for end in (b".so" + version, first))
    return name.startswith(b"libpython") or not is_known
