"""Copies code objects with changed fields."""

from __future__ import annotations

import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Arguments of the constructor of code objects before Python 3.8, in order.
_FIELDS = [
    "argcount",
    "kwonlyargcount",
    "nlocals",
    "stacksize",
    "flags",
    "code",
    "consts",
    "names",
    "varnames",
    "filename",
    "name",
    "firstlineno",
    "lnotab",
    "freevars",
    "cellvars",
]


def replaced(code: types.CodeType, **fields: Any) -> types.CodeType:
    """Return ``code`` with other ``fields``, named as its attributes are."""
    if sys.version_info >= (3, 8):
        made = code.replace(**fields)
    else:
        names = ["co_" + name for name in _FIELDS]
        made = types.CodeType(*[fields.get(name, getattr(code, name)) for name in names])
    return made
