"""Adds a call in front of a function's code; the function object stays the same.

Like some debuggers, this module changes the bytecode: it inserts a call where the body begins, and
adjusts jumps and tables. No frame of ours is on the stack while the function runs.

The result of the call may be kept while the function runs, at the bottom of its frame's value
stack. It is released when the function returns or raises: the object's ``__del__`` then reports the
end.
"""

from __future__ import annotations

import opcode

from . import code_tables
from .codes import copy_code
from .relocation import insert
from .version import CAN_KEEP_VALUES, CURRENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any, Callable

    from .version import Instructions, Version

_GENERATORS = 0x20 | 0x80 | 0x200  # flags of generators and coroutines: calling one runs none of its code
_VARARGS = 0x04
_ARG_MAX = 0xFF  # maximum argument of an instruction without extension
_CODE_MAX = 0x4000  # maximum bytes of code that is changed; the arguments of all its jumps have two bytes


def with_call(
    code: types.CodeType, callback: Callable[..., Any], count: int, keeps_result: bool = False
) -> types.CodeType | None:
    """Return ``code`` with a call of ``callback`` in front, None if it cannot be changed.

    ``callback`` gets the first ``count`` arguments of the code; the last may be the tuple
    ``*args``. ``keeps_result``: the result of the call is kept until the code ends.
    """
    version = CURRENT
    if version is None or (keeps_result and not CAN_KEEP_VALUES):
        return None
    # The positional arguments are followed by ``*args`` if there are no others.
    available_count = code.co_argcount + bool(code.co_flags & _VARARGS and not code.co_kwonlyargcount)
    is_large = len(code.co_consts) > _ARG_MAX or len(code.co_code) > _CODE_MAX
    if is_large or code.co_flags & _GENERATORS or count > available_count:
        return None
    head = _call(code, version, count, keeps_result)
    stack_size = max(code.co_stacksize + keeps_result, count + 2)
    fields = {**_moved(code, version, head, keeps_result), "co_stacksize": stack_size}
    return copy_code(code, co_consts=(*code.co_consts, callback), **fields)


def _call(code: types.CodeType, version: Version, count: int, keeps_result: bool) -> bytes:
    """Return a call of the constant after those of ``code``, with the first ``count`` variables."""
    has_common_numbers = version.null_at is not None  # cells are numbered like local variables
    instructions: Instructions = [("LOAD_CONST", len(code.co_consts))]
    if version.null_at is not None:
        instructions.insert(version.null_at, ("PUSH_NULL", 0))
    for index, name in enumerate(code.co_varnames[:count]):
        if name in code.co_cellvars:
            instructions.append(("LOAD_DEREF", index if has_common_numbers else code.co_cellvars.index(name)))
        else:
            instructions.append(("LOAD_FAST", index))
    instructions.extend((name, count) for name in version.caches or ("CALL_FUNCTION",))
    if not keeps_result:
        instructions.append(("POP_TOP", 0))
    return _encode(instructions, version)


def _moved(code: types.CodeType, version: Version, head: bytes, keeps_result: bool) -> dict[str, Any]:
    """Return the changed fields of ``code`` with ``head`` where its body begins."""
    raw, at = code.co_code, 0
    if version.has_resume:  # it follows the instructions that prepare the frame
        at = next(at for at in range(0, len(raw), 2) if raw[at] == opcode.opmap["RESUME"]) + 2
    # What releases the kept value, by the number of a return.
    kept = version.release if keeps_result else {}
    releases = {opcode.opmap[name]: _encode(instructions, version) for name, instructions in kept.items()}
    moved_code, new_offsets = insert(raw, head, at, version.jump_unit, releases)
    if version.line_table != "locations":
        name = "co_" + version.line_table
        table = getattr(code_tables, version.line_table)(getattr(code, name), new_offsets)
        return {"co_code": moved_code, name: table}
    return {
        "co_code": moved_code,
        "co_linetable": code_tables.locations(code.co_linetable, new_offsets, at, len(head)),
        "co_exceptiontable": code_tables.handlers(code.co_exceptiontable, new_offsets, int(keeps_result)),
    }


def _encode(instructions: Instructions, version: Version) -> bytes:
    """Return the bytes of ``instructions`` with their inline caches."""
    return b"".join(
        bytes((opcode.opmap[name], arg)) + b"\0\0" * version.caches.get(name, 0) for name, arg in instructions
    )
