"""Changes a job's environment, and detects commands that ignore the changes."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Final

#: The folder that is added to a job's module path.
INJECT: Final = os.path.join(os.path.abspath(__file__).rsplit(os.sep, 3)[0], "shim", "inject")

_PYTHON: Final = re.compile(r"(python|pypy)[0-9.]*")
#: Options with which Python ignores PYTHONPATH or does not load sitecustomize.
_ISOLATING: Final = frozenset("IES")
#: Options that a value follows. After -c and -m the rest belongs to the program.
_WITH_VALUE: Final = frozenset("WX")
_ENDS_OPTIONS: Final = frozenset("cm")


def given() -> dict[str, str]:
    """Return the initial environment of this process; os.environ may have LC_CTYPE from Python."""
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = [os.fsdecode(entry).partition("=") for entry in file.read().split(b"\0")]
    except OSError:
        return dict(os.environ)
    return {name: text for name, equals, text in reversed(pairs) if equals and name}


def job_environment(environ: Mapping[str, str], run: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return ``environ`` with the shim on the module path, ``run`` and ``settings``.

    ``run`` is the value of TFPROF_RUN.
    """
    old = [entry for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry != INJECT]
    # An empty entry means the working folder: an existing one stays, none is added.
    path = os.pathsep.join([INJECT, *old]) if old != [""] else INJECT
    return {**environ, **settings, "PYTHONPATH": path, "TFPROF_RUN": run}


def isolating_option(command: Sequence[str]) -> str | None:
    """Return the option with which the Python in ``command`` does not load the shim, or None."""
    if not _PYTHON.fullmatch(os.path.basename(command[0])):
        return None
    skip = False
    for word in command[1:]:
        if skip:
            skip = False
            continue
        if not word.startswith("-") or word in ("-", "--") or word.startswith("--"):
            return None
        for at, letter in enumerate(word[1:], 1):
            if letter in _ISOLATING:
                return f"-{letter}"
            if letter in _ENDS_OPTIONS:
                return None
            if letter in _WITH_VALUE:
                skip = at == len(word) - 1
                break
    return None
