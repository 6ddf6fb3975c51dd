"""Adds a call in front of a function's code; the function object stays the same.

Like some debuggers, this module changes the bytecode: it inserts a call where the body begins, and
adjusts jumps and tables. No frame of ours is on the stack while the function runs. Only the
versions of CPython whose bytecode is described here are supported.

The result of the call may be kept while the function runs, at the bottom of its frame's value
stack. It is released when the function returns or raises: the object's ``__del__`` then reports the
end. The result may also choose between the body and a call of another function.
An exception handler around the body may report failures.
"""

from __future__ import annotations

import sys

from .codes import copy_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any, Callable, List, Tuple, Union

    Instructions = List[Tuple[str, Union[int, str]]]  # name, and argument or the label that a jump goes to

_VERSION = sys.version_info[:2]
_IS_SUPPORTED = sys.implementation.name == "cpython" and (3, 7) <= _VERSION <= (3, 13)
#: Inline cache of an instruction, in units of two bytes.
_CACHES = {
    (3, 11): {"PRECALL": 1, "CALL": 4},
    (3, 12): {"CALL": 3},
    (3, 13): {"CALL": 3, "POP_JUMP_IF_TRUE": 1},
}.get(_VERSION, {})
#: CPython 3.11.0 exposes a partly cleared frame to finalizers (GH-99729).
_CAN_KEEP = sys.version_info < (3, 11) or sys.version_info >= (3, 11, 1)
#: Instructions that release the kept value before a return, by the return's instruction. Before
#: Python 3.9 the return itself releases it. Since Python 3.11 a return does so only if nothing
#: refers to the frame, such as an exception that was raised below and that the job has stored.
_RELEASE: dict[str, Instructions] = (
    {"RETURN_VALUE": [("SWAP", 2), ("POP_TOP", 0)], "RETURN_CONST": [("POP_TOP", 0)]}
    if _VERSION >= (3, 11)
    else {"RETURN_VALUE": [("ROT_TWO", 0), ("POP_TOP", 0)] if _VERSION >= (3, 9) else []}
)
_SINCE_311 = _VERSION >= (3, 11)  # calls begin with PUSH_NULL; cells are numbered like local variables
_GENERATORS = 0x20 | 0x80 | 0x200  # flags of generators and coroutines: calling one runs none of its code
_VARARGS = 0x04
_VARKEYWORDS = 0x08
_ARG_MAX = 0xFF  # maximum argument of an instruction without extension
_BRANCH, _HANDLER = "branch", "handler"  # labels of code that is added after the body
_JUMP_IF_TRUE = "POP_JUMP_FORWARD_IF_TRUE" if _VERSION == (3, 11) else "POP_JUMP_IF_TRUE"
_ABSOLUTE_JUMPS = (_JUMP_IF_TRUE,) if _VERSION < (3, 11) else ()
_JUMP_UNIT = 1 if _VERSION < (3, 10) else 2  # bytes
#: Begins a block of code with an exception handler, before Python 3.11.
_SETUP_HANDLER = "SETUP_EXCEPT" if _VERSION < (3, 8) else "SETUP_FINALLY"
#: Ends that block before a return. In Python 3.7, the return itself does.
_END_BLOCK = [("POP_BLOCK", 0)] if (3, 8) <= _VERSION < (3, 11) else []
_RERAISE = "RAISE_VARARGS" if _VERSION < (3, 9) else "RERAISE"
_EXCEPTION_VALUES = 6  # maximum values that an exception handler finds on the stack
#: Code after an exception handler, since Python 3.11. It ends the handling of the exception, and
#: passes the exception on to the caller.
_CLEANUP = (("COPY", 3), ("POP_EXCEPT", 0), ("RERAISE", 1))
#: Instructions after which a variable may be unbound. Cells have numbers of their own.
_UNBINDING, _UNBINDING_CELL = ("DELETE_FAST", "LOAD_FAST_AND_CLEAR"), ("DELETE_DEREF",)


def with_call(
    code: types.CodeType,
    callback: Callable[..., Any],
    count: int,
    keeps_result: bool = False,
    on_failure: Callable[..., Any] | None = None,
) -> types.CodeType | None:
    """Return ``code`` with a call of ``callback`` in front, None if it cannot be changed.

    ``callback`` gets the first ``count`` arguments of the code; the last may be the tuple
    ``*args``. ``keeps_result``: the result of the call is kept until the code ends. ``on_failure``
    is called with the same arguments when the body raises, and must not raise.
    """
    if keeps_result and not _CAN_KEEP:
        return None
    change = _Change(code, count, keeps_result)
    change.head = change.call(callback, count)
    if not keeps_result:
        change.head.append(("POP_TOP", 0))
    if on_failure is not None:
        change.handle_failures(on_failure)
    return change.apply()


def with_branch(
    code: types.CodeType,
    condition: Callable[..., bool],
    count: int,
    otherwise: Callable[..., Any],
    on_failure: Callable[..., Any],
    line: int,
) -> types.CodeType | None:
    """Return ``code`` whose body runs only if ``condition`` returns False.

    If it returns True, ``otherwise`` is called instead, on line ``line``, with all arguments of the
    code in the order of its variables: ``*args`` is one tuple and ``**kwargs`` one dict. The first
    ``count`` arguments are those of ``condition`` and of ``on_failure``. ``on_failure`` is called
    when the body or ``otherwise`` raises, and must not raise. Return None if ``code`` cannot be
    changed.
    """
    change = _Change(code, count, keeps_result=False)
    change.head = [*change.call(condition, count), (_JUMP_IF_TRUE, _BRANCH)]
    change.line = line
    change.branch = [*change.call(otherwise, change.variable_count), ("RETURN_VALUE", 0)]
    change.handle_failures(on_failure)
    return change.apply()


class _Change(object):
    """Instructions to add to a code: ``head`` before its body, ``branch`` and ``handler`` after it.

    ``line`` is the line number of ``branch`` and ``handler``, None if they have no line.
    """

    def __init__(self, code: types.CodeType, count: int, keeps_result: bool) -> None:
        self.code = code
        self.count = count
        self.kept_values = int(keeps_result)
        self.head: Instructions = []
        self.branch: Instructions = []
        self.handler: Instructions = []
        self.line: int | None = None
        self.constants = list(code.co_consts)
        self.stack_size = code.co_stacksize + self.kept_values
        self.is_possible = _IS_SUPPORTED and not code.co_flags & _GENERATORS and count <= _argument_count(code)
        flags = bool(code.co_flags & _VARARGS) + bool(code.co_flags & _VARKEYWORDS)
        self.variable_count = code.co_argcount + code.co_kwonlyargcount + flags

    def call(self, function: Callable[..., Any], count: int) -> Instructions:
        """Return a call of ``function``, a new constant, with the first ``count`` variables."""
        code = self.code
        instructions: Instructions = [("LOAD_CONST", len(self.constants))]
        self.constants.append(function)
        self.stack_size = max(self.stack_size, self.kept_values + _EXCEPTION_VALUES + count + 2)
        if _SINCE_311:
            instructions.insert(1 if _VERSION >= (3, 13) else 0, ("PUSH_NULL", 0))
        for index, name in enumerate(code.co_varnames[:count]):
            if name in code.co_cellvars:
                instructions.append(("LOAD_DEREF", index if _SINCE_311 else code.co_cellvars.index(name)))
            else:
                instructions.append(("LOAD_FAST", index))
        if _VERSION == (3, 11):
            instructions.append(("PRECALL", count))
        instructions.append(("CALL" if _SINCE_311 else "CALL_FUNCTION", count))
        return instructions

    def handle_failures(self, on_failure: Callable[..., Any]) -> None:
        """Call ``on_failure`` when the body or the branch raises; then raise the same exception."""
        if _unbinds_variables(self.code, self.count):
            self.is_possible = False
        handler = [*self.call(on_failure, self.count), ("POP_TOP", 0), (_RERAISE, 0)]
        if _SINCE_311:
            self.handler = [("PUSH_EXC_INFO", 0), *handler]
        else:
            self.handler = handler
            self.head.append((_SETUP_HANDLER, _HANDLER))
            if self.branch:
                self.branch = [(_SETUP_HANDLER, _HANDLER), *self.branch[:-1], *_END_BLOCK, self.branch[-1]]

    def apply(self) -> types.CodeType | None:
        """Return the changed code, None if it cannot be changed."""
        if not self.is_possible or len(self.constants) > _ARG_MAX:
            return None
        fields = self._fields_since_311() if _SINCE_311 else self._fields_before_311()
        if fields is None:
            return None
        return copy_code(self.code, co_consts=tuple(self.constants), co_stacksize=self.stack_size, **fields)

    def _encode(self, head_at: int, body_end: int) -> tuple[bytes, bytes] | None:
        """Return the bytes of ``head`` and of ``branch`` with ``handler``.

        Return None if a jump is too long.
        """
        handler_at = body_end + _size(self.branch)
        labels = {_BRANCH: body_end, _HANDLER: handler_at}
        head = _encode(self.head, head_at, labels)
        branch = _encode(self.branch, body_end, labels)
        handler = _encode(self.handler, handler_at, labels)
        return None if head is None or branch is None or handler is None else (head, branch + handler)

    def _fields_before_311(self) -> dict[str, Any] | None:
        from . import relocation

        before_return: Instructions = [
            *(_RELEASE["RETURN_VALUE"] if self.kept_values else []),
            *(_END_BLOCK if self.handler else []),
        ]
        body, new_offset = relocation.move_code(
            self.code.co_code, _size(self.head), _encode(before_return, 0, {}) or b""
        )
        encoded = self._encode(0, _size(self.head) + len(body))
        if encoded is None:
            return None
        head, tail = encoded
        name = "lnotab" if _VERSION < (3, 10) else "linetable"
        table = getattr(relocation, name)(getattr(self.code, "co_" + name), new_offset)
        if tail:
            line = None if self.line is None else self.line - self.code.co_firstlineno
            table += getattr(relocation, name + "_end")(table, len(head) + len(body), len(tail), line)
        return {"co_code": head + body + tail, "co_" + name: table}

    def _fields_since_311(self) -> dict[str, Any] | None:
        import opcode

        from . import handler_table, location_table, returns

        code = self.code
        if self.kept_values:
            releases = {opcode.opmap[name]: _encode(_RELEASE[name], 0, {}) for name in _RELEASE if name in opcode.opmap}
            code = returns.with_prefixes(code, releases)
        at = _body_offset(code.co_code, opcode.opmap)
        size = _size(self.head)
        body_end = size + len(code.co_code)
        encoded = self._encode(at, body_end)
        line_table = location_table.insert(code.co_linetable, at // 2, size // 2)
        if encoded is None or line_table is None:
            return None
        head, tail = encoded
        exception_table = handler_table.move(code.co_exceptiontable, size // 2, self.kept_values)
        if self.handler:
            handler_at = body_end + _size(self.branch)
            cleanup_at = handler_at + _size(self.handler)
            tail += b"".join(_instruction(opcode.opmap[name], name, arg) for name, arg in _CLEANUP)
            exception_table = handler_table.with_handler(
                exception_table, (at + size) // 2, handler_at // 2, cleanup_at // 2, self.kept_values
            )
        if tail:
            line_table += location_table.append(
                line_table, len(tail) // 2, None if self.line is None else self.line - code.co_firstlineno
            )
        return {
            "co_code": code.co_code[:at] + head + code.co_code[at:] + tail,
            "co_linetable": line_table,
            "co_exceptiontable": exception_table,
        }


def _argument_count(code: types.CodeType) -> int:
    """Return how many arguments are available in this order: positional ones and ``*args``."""
    return code.co_argcount + bool(code.co_flags & _VARARGS and not code.co_kwonlyargcount)


def _unbinds_variables(code: types.CodeType, count: int) -> bool:
    """Return whether ``code`` may unbind one of its first ``count`` variables."""
    import opcode

    names, raw = opcode.opname, code.co_code
    return any(
        (names[raw[at]] in _UNBINDING and raw[at + 1] < count) or names[raw[at]] in _UNBINDING_CELL
        for at in range(0, len(raw), 2)
    )


def _size(instructions: Instructions) -> int:
    """Return the number of bytes of ``instructions``."""
    return sum(2 + 2 * _CACHES.get(name, 0) for name, _ in instructions)


def _encode(instructions: Instructions, at: int, labels: dict[str, int]) -> bytes | None:
    """Return the bytes of ``instructions`` at offset ``at``; None if an argument is too large."""
    import opcode

    out = b""
    for name, arg in instructions:
        number = arg if isinstance(arg, int) else _jump(name, at + len(out), labels[arg])
        if number > _ARG_MAX:
            return None
        out += _instruction(opcode.opmap[name], name, number)
    return out


def _jump(name: str, at: int, target: int) -> int:
    """Return the argument of the jump ``name`` at offset ``at`` to offset ``target``."""
    origin = 0 if name in _ABSOLUTE_JUMPS else at + 2 + 2 * _CACHES.get(name, 0)
    return (target - origin) // _JUMP_UNIT


def _instruction(number: int, name: str, arg: int) -> bytes:
    """Return the bytes of one instruction with its inline cache."""
    return bytes((number, arg)) + b"\0\0" * _CACHES.get(name, 0)


def _body_offset(code: bytes, numbers: dict[str, int]) -> int:
    """Return the offset of the body, which follows the instructions that prepare the frame."""
    return next(at for at in range(0, len(code), 2) if code[at] == numbers["RESUME"]) + 2
