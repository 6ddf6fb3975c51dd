"""The injected work: it arms the shim, whose files are sent along, or disarms it."""

import functools
import json
import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from .errors import AttachError

_ROOT: Final = os.path.abspath(__file__).rsplit(os.sep, 3)[0]
#: Folders with the files that are sent along.
_FOLDERS: Final = ("formats", "shim", "shim/channel", "shim/cpython", "shim/pacing", "shim/steps", "shim/tensorflow")
#: The compiled part of the shim; an installation without a compiler has none.
_COMPILED_FILE: Final = "shim/pacing/_native.abi3.so"
#: The file that runs, and the code that is appended to it.
_MAIN_FILE: Final = "shim/attached.py"
_CALL: Final = "\nanswer = act(data)\n"
_PACKAGE_FILE: Final = "__init__.py"


class ShimAnswer(NamedTuple):
    """The answer of a job.

    ``armed``: the shim is armed; ``before``: it was armed before the request. ``loaded``: a
    framework is loaded. ``channel``: the process has a channel; ``refused``: it could not create
    one.
    """

    armed: bool
    before: bool
    loaded: bool = False
    channel: bool = False
    refused: bool = False


def arming_work(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the work that arms a job with the settings in ``environ``, as `tfprof-run` does."""
    return {
        "code": _text(_MAIN_FILE) + _CALL,
        "action": "arm",
        "sources": _sources(),
        "compiled": _compiled(),
        "environ": dict(environ),
    }


def disarming_work(launch: int) -> dict[str, Any]:
    """Return the work that disarms a job if ``launch`` armed it."""
    return {"code": _text(_MAIN_FILE) + _CALL, "action": "disarm", "launch": launch}


def parse_answer(text: str) -> ShimAnswer:
    """Parse the shim's answer in ``text``; AttachError if it is invalid."""
    try:
        return ShimAnswer(**{name: bool(value) for name, value in json.loads(text).items()})
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise AttachError("the process sent an invalid answer") from None


@functools.cache
def _sources() -> dict[str, str]:
    names = (f"{folder}/{name}" for folder in _FOLDERS for name in sorted(os.listdir(os.path.join(_ROOT, folder))))
    return {
        name: _text(name)
        for name in names
        if name.endswith(".py") and os.path.basename(name) != _PACKAGE_FILE and name != _MAIN_FILE
    }


def _compiled() -> bytes:
    try:
        with open(os.path.join(_ROOT, _COMPILED_FILE), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _text(name: str) -> str:
    with open(os.path.join(_ROOT, name), encoding="utf-8") as file:
        return file.read()
