"""Copies code objects with changed fields."""

import sys

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from types import CodeType
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


def replaced(code: "CodeType", **fields: "Any") -> "CodeType":
    """Return ``code`` with other ``fields``, named as its attributes are."""
    if sys.version_info >= (3, 8):
        made = code.replace(**fields)
    else:
        names = ["co_" + name for name in _FIELDS]
        made = type(code)(*[fields.get(name, getattr(code, name)) for name in names])
    return made
