"""Loads the part of the shim that is written in C, where that is possible.

Python code does the same where no compiler has built that part, where this Python cannot load it,
and in processes that tfprof is attached to: these load the shim from memory, without files.
"""

from __future__ import annotations

import _imp
import os

from .guard import raised_by_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SUFFIX = ".abi3.so"
_NAME = "_native"


class _Spec(object):
    """What the interpreter's loader of extension modules needs."""

    def __init__(self, name: str, origin: str) -> None:
        self.name = name
        self.origin = origin


def _load() -> Any:
    """Return the module, None where it cannot be loaded."""
    path = os.path.join(os.path.dirname(globals().get("__file__", "")), _NAME + SUFFIX)
    if SUFFIX not in _imp.extension_suffixes() or not os.path.isabs(path) or not os.path.exists(path):
        return None
    try:
        spec: Any = _Spec(__name__.rpartition(".")[0] + "." + _NAME, path)
        return _imp.create_dynamic(spec)
    except (ImportError, SystemError) as error:
        if raised_by_job(error):
            raise
        return None


module = _load()
