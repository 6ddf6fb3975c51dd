"""Keeps our frames out of the job's tracebacks.

From Python 3.11 on, an except clause can drop the entry of its own frame before it raises again.
Before Python 3.11 this entry stays, but entries below it can be dropped. Therefore the wrapper's
code gets the file, name and line of the function that it wraps, and the entry of that function is
dropped.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Callable, TypeVar

from ..own_os import OUR_FILE_PREFIXES
from .codes import copy_code
from .version import CURRENT, Version

F = TypeVar("F", bound=Callable[..., Any])

#: Whether an except clause can drop its own entry. Unknown versions are later ones, which can, too.
_CAN_DROP_OWN_ENTRY = CURRENT is None or CURRENT.drops_own_entry


def mimic(wrapper: F, original: Any, marker: str) -> F:
    """Return ``wrapper`` with the metadata of ``original``.

    Before Python 3.11, the code of ``wrapper`` also gets the file of ``original`` and the line at
    which ``original`` calls ``marker``.
    """
    functools.update_wrapper(wrapper, original)
    code = getattr(original, "__code__", None)
    if code is not None and CURRENT is not None and not CURRENT.drops_own_entry:
        wrapper.__code__ = _code_at_line(wrapper.__code__, code, _line_of_call(code, CURRENT, marker), CURRENT)
    return wrapper


def strip_our_frames(error: BaseException, original: Any) -> None:
    """Remove our entries from the traceback of ``error``.

    Call it just before a bare ``raise`` in a function that mimics ``original``, or in one whose
    code was changed to call a function of ours instead of running itself.
    """
    own_entry = error.__traceback__
    entry = own_entry.tb_next if own_entry is not None else None
    while entry is not None and entry.tb_frame.f_code.co_filename.startswith(OUR_FILE_PREFIXES):
        entry = entry.tb_next
    if _CAN_DROP_OWN_ENTRY:
        error.__traceback__ = entry
    elif own_entry is not None and entry is not None:
        is_of_original = entry.tb_frame.f_code is getattr(original, "__code__", None)
        own_entry.tb_next = entry.tb_next if is_of_original else entry


def _code_at_line(code: types.CodeType, original: types.CodeType, line: int, version: Version) -> types.CodeType:
    """Return ``code`` with file, name and first line of ``original``, all of it at ``line``."""
    lines, size = line - original.co_firstlineno, len(code.co_code)
    table = b"\0\x7f" * (lines // 127) + bytes((0, lines % 127))
    if version.line_table == "linetable":
        table += b"\xfe\0" * (size // 254) + bytes((size % 254, 0))
    fields: dict[str, Any] = {
        "co_filename": original.co_filename,
        "co_name": original.co_name,
        "co_firstlineno": original.co_firstlineno,
        "co_" + version.line_table: table,
    }
    return copy_code(code, **fields)


def _line_of_call(code: types.CodeType, version: Version, marker: str) -> int:
    """Return the line at which ``code`` calls ``marker``, a name that it uses.

    In Python 3.7, a call that spans several lines has the number of the last line.
    """
    import dis

    line, marker_line = code.co_firstlineno, None
    for instruction in dis.get_instructions(code):
        if instruction.starts_line is not None:
            line = instruction.starts_line
            if marker_line is not None and not version.reports_last_line:
                break
        if instruction.argval == marker:
            marker_line = line
        elif marker_line is not None and instruction.opname.startswith("CALL"):
            return line if version.reports_last_line else marker_line
    return marker_line or code.co_firstlineno
