"""Adds a call in front of a function's code; the function object stays the same.

Like some debuggers, this module changes the bytecode: it inserts a call where the body begins, and
adjusts jumps and tables. No frame of ours is on the stack while the function runs. Only the
versions of CPython whose bytecode is described here are supported.

The result of the call may be kept while the function runs, at the bottom of its frame's value
stack. The interpreter releases it when the function returns or raises: the object's ``__del__``
then reports the end.
"""

from __future__ import annotations

import sys

from .codes import copy_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any, Callable, Iterator

_VERSION = sys.version_info[:2]
_IS_SUPPORTED = sys.implementation.name == "cpython" and (3, 7) <= _VERSION <= (3, 13)
#: Inline cache of an instruction, in units of two bytes.
_CACHES = {(3, 11): {"PRECALL": 1, "CALL": 4}}.get(_VERSION, {"CALL": 3} if _VERSION > (3, 11) else {})
#: CPython 3.11.0 exposes a partly cleared frame to finalizers (GH-99729).
_CAN_KEEP = sys.version_info < (3, 11) or sys.version_info >= (3, 11, 1)
#: Versions that do not release values left on the stack at a return: there the code itself releases
#: the kept value.
_MUST_RELEASE = ((3, 9), (3, 10))
_RELEASE = ("ROT_TWO", "POP_TOP")
_SINCE_311 = _VERSION >= (3, 11)  # calls begin with PUSH_NULL; cells are numbered like local variables
_GENERATORS = 0x20 | 0x80 | 0x200  # flags of generators and coroutines: calling one runs none of its code
_VARARGS = 0x04
_ARG_MAX = 0xFF  # maximum argument of an instruction without extension
#: Forms of an entry in the location table. The line offset is 0, 1 or 2 in the short forms; the
#: other two forms have any line offset, without or with columns.
_SHORT, _LINE, _LINE_AND_COLUMNS = (10, 11, 12), 13, 14


def with_call(
    code: types.CodeType, callback: Callable[..., Any], count: int, keeps_result: bool = False
) -> types.CodeType | None:
    """Return ``code`` with a call of ``callback`` in front, None if it cannot be changed.

    ``callback`` gets the first ``count`` arguments of the code; the last may be the tuple
    ``*args``. ``keeps_result``: the result of the call is kept until the code ends.
    """
    if (
        (keeps_result and not _CAN_KEEP)
        or not _IS_SUPPORTED
        or code.co_flags & _GENERATORS
        or _argument_count(code) < count
        or len(code.co_consts) > _ARG_MAX
    ):
        return None
    import opcode

    numbers = opcode.opmap
    call = b"".join(
        _instruction(numbers[name], name, arg) for name, arg in _call_instructions(code, count, keeps_result)
    )
    fields: dict[str, Any] = {
        "co_consts": (*code.co_consts, callback),
        "co_stacksize": max(code.co_stacksize + keeps_result, count + 3),
    }
    if _VERSION < (3, 11):
        from . import relocation

        must_release = keeps_result and _VERSION in _MUST_RELEASE
        release = b"".join(bytes((numbers[name], 0)) for name in _RELEASE if must_release)
        body, new_offset = relocation.move_code(code.co_code, len(call), release)
        fields["co_code"] = call + body
        table = "lnotab" if _VERSION < (3, 10) else "linetable"
        fields["co_" + table] = getattr(relocation, table)(getattr(code, "co_" + table), new_offset)
    else:
        at = _body_offset(code.co_code, numbers)
        line_table = _locations_with_call(code.co_linetable, at // 2, len(call) // 2)
        if line_table is None:
            return None
        fields["co_code"] = code.co_code[:at] + call + code.co_code[at:]
        fields["co_linetable"] = line_table
        fields["co_exceptiontable"] = _moved_handlers(code.co_exceptiontable, len(call) // 2, keeps_result)
    return copy_code(code, **fields)


def _argument_count(code: types.CodeType) -> int:
    """Return how many arguments are available in this order: positional ones and ``*args``."""
    return code.co_argcount + bool(code.co_flags & _VARARGS and not code.co_kwonlyargcount)


def _call_instructions(code: types.CodeType, count: int, keeps_result: bool) -> Iterator[tuple[str, int]]:
    """Yield (name, argument) of the call's instructions; the callback becomes the last constant."""
    load_callback = [("LOAD_CONST", len(code.co_consts))]
    if _SINCE_311:
        load_callback.insert(1 if _VERSION >= (3, 13) else 0, ("PUSH_NULL", 0))
    yield from load_callback
    for index, name in enumerate(code.co_varnames[:count]):
        if name in code.co_cellvars:
            yield "LOAD_DEREF", index if _SINCE_311 else code.co_cellvars.index(name)
        else:
            yield "LOAD_FAST", index
    if _VERSION == (3, 11):
        yield "PRECALL", count
    yield "CALL" if _SINCE_311 else "CALL_FUNCTION", count
    if not keeps_result:
        yield "POP_TOP", 0


def _instruction(number: int, name: str, arg: int) -> bytes:
    """Return the bytes of one instruction with its inline cache."""
    return bytes((number, arg)) + b"\0\0" * _CACHES.get(name, 0)


def _body_offset(code: bytes, numbers: dict[str, int]) -> int:
    """Return the offset of the body, which follows the instructions that prepare the frame."""
    return next(at for at in range(0, len(code), 2) if code[at] == numbers["RESUME"]) + 2


# -- since Python 3.11: tables of variable-length numbers ----------------------------------------


def _locations_with_call(table: bytes, at: int, units: int) -> bytes | None:
    """Return the location table for code with ``units`` inserted after its first ``at`` units.

    The inserted code gets the line of the code after it. Return None if no entry ends at ``at``.
    """
    covered = index = 0
    while covered < at and index < len(table):
        covered += (table[index] & 7) + 1
        index = _entry_end(table, index)
    if covered != at:
        return None
    line, following_entries = _split_line(table[index:])
    inserted = b""
    while units:
        size = min(units, 8)
        inserted += bytes((0x80 | _LINE << 3 | size - 1,)) + line
        units -= size
        line = b"\0"
    return table[:index] + inserted + following_entries


def _entry_end(table: bytes, index: int) -> int:
    """Return the end of the entry at ``index``; an entry's first byte has the highest bit set."""
    index += 1
    while index < len(table) and not table[index] & 0x80:
        index += 1
    return index


def _split_line(table: bytes) -> tuple[bytes, bytes]:
    """Return the encoded line offset of the first entry, and the table with 0 in its place."""
    form = table[0] >> 3 & 0xF
    if form in _SHORT:
        return bytes((2 * (form - _SHORT[0]),)), bytes((table[0] & 0x87 | _SHORT[0] << 3,)) + table[1:]
    if form not in (_LINE, _LINE_AND_COLUMNS):
        return b"\0", table
    end = 1
    while table[end] & 0x40:
        end += 1
    return table[1 : end + 1], table[:1] + b"\0" + table[end + 1 :]


def _moved_handlers(table: bytes, units: int, kept_values: int) -> bytes:
    """Return the exception table for code that begins ``units`` later.

    The stack of each handler has ``kept_values`` further values at its bottom.
    """
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 0x3F
        if not byte & 0x40:
            numbers.append(value)
            value = 0
    moved_table = b""
    for at in range(0, len(numbers), 4):
        start, length, target, depth = numbers[at : at + 4]
        values = (start + units, length, target + units, depth + 2 * kept_values)
        entry = b"".join(map(_encode_number, values))
        moved_table += bytes((entry[0] | 0x80,)) + entry[1:]
    return moved_table


def _encode_number(value: int) -> bytes:
    """Return ``value`` in groups of six bits, the highest first."""
    groups = [value & 0x3F]
    while value > 0x3F:
        value >>= 6
        groups.append(value & 0x3F | 0x40)
    return bytes(reversed(groups))
