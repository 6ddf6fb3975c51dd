"""Copies code objects and changes some of their fields."""

import sys

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

#: Arguments of the code objects' constructor before Python 3.8, in order.
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


def copy_code(code: "CodeType", **fields: "Any") -> "CodeType":
    """Return a copy of ``code`` with other ``fields``, which are named like its attributes."""
    if sys.version_info >= (3, 8):
        copy = code.replace(**fields)
    else:
        names = ["co_" + name for name in _FIELDS]
        copy = type(code)(*[fields.get(name, getattr(code, name)) for name in names])
    return copy
