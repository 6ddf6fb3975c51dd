"""Copies of code objects with changes."""

import sys

from .version import KNOWS_INSTRUCTIONS

TYPE_CHECKING = False  # types are quoted: importing even __future__ would slow down every interpreter's start
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Callable, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

#: Arguments of the code objects' constructor before Python 3.8, in order.
_FIELDS = (
    "argcount kwonlyargcount nlocals stacksize flags code consts names varnames filename name firstlineno lnotab"
    " freevars cellvars"
)
#: Instructions that begin a ``try`` in Python 3.7.
_SETUP_EXCEPT, _SETUP_FINALLY = 121, 122
#: The operand with which RESUME runs no signal handlers.
_AFTER_YIELD_FROM = 2


def copy_code(code: "CodeType", **fields: "Any") -> "CodeType":
    """Return a copy of ``code`` with other ``fields``, which are named like its attributes."""
    if sys.version_info >= (3, 8):
        copy = code.replace(**fields)
    else:
        names = ["co_" + name for name in _FIELDS.split()]
        copy = type(code)(*[fields.get(name, getattr(code, name)) for name in names])
    return copy


def assigns_attribute(code: "CodeType", name: str) -> bool:
    """Return whether ``code`` assigns an attribute ``name``; on unknown versions, if it uses it."""
    if not KNOWS_INSTRUCTIONS or name not in code.co_names:
        return name in code.co_names
    import opcode

    store, index, raw = opcode.opmap["STORE_ATTR"], code.co_names.index(name) & 0xFF, code.co_code
    return any(raw[at] == store and raw[at + 1] == index for at in range(0, len(raw), 2))


def names_in(code: "CodeType") -> "set[str]":
    """Return the names and variables in ``code`` and in the functions that it defines."""
    inner_codes = (constant for constant in code.co_consts if type(constant) is type(code))
    return {*code.co_names, *code.co_varnames}.union(*map(names_in, inner_codes))


def uninterrupted_start(function: "Callable[P, R]") -> "Callable[P, R]":
    """Let no signal handler run in ``function`` before its first line, and return it.

    If that line is a ``try``, all exceptions of signal handlers are raised within it. Python 3.8 to
    3.10 need no change for this. On an unknown version nothing is changed.
    """
    if KNOWS_INSTRUCTIONS:
        function.__code__ = _changed(function.__code__)
    return function


def _changed(code: "CodeType") -> "CodeType":
    """Return ``code`` with another first instruction, where it needs one.

    In Python 3.7 the instruction of a ``try`` with ``except`` is replaced by that of a ``try`` with
    ``finally``. Both have the same effect as long as no ``return`` leaves the block.
    """
    raw = bytearray(code.co_code)
    if sys.version_info < (3, 8) and raw[0] == _SETUP_EXCEPT:
        raw[0] = _SETUP_FINALLY
    if sys.version_info >= (3, 11):
        resume = (lambda: 0).__code__.co_code[0]
        at = next((at for at in range(0, len(raw), 2) if raw[at] == resume), None)
        if at is not None:
            raw[at + 1] = _AFTER_YIELD_FROM
    return code if raw == code.co_code else copy_code(code, co_code=bytes(raw))
