"""Inserts instructions before each return of a function's code, since Python 3.11.

All jumps are relative there. Instructions may be followed by inline caches, and tables of
variable-length numbers give their locations and exception handlers.
"""

from __future__ import annotations

from .codes import copy_code
from .handler_table import encode, entries
from .location_table import extend

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any, Iterator, Mapping

_UNIT = 2  # bytes
_ARG_BITS = 8  # of the argument of one unit


class _Instruction(object):
    """An instruction with its extensions and caches, in units of the old code.

    ``end`` follows the caches. ``target`` is the unit that a jump goes to. ``prefix`` is code to
    insert before the instruction. ``size`` is the number of units of the new instruction with its
    extensions, but without ``cache_count`` caches.
    """

    __slots__ = ("arg", "begin", "cache_count", "end", "is_backward", "number", "prefix", "size", "target")

    def __init__(self, code: bytes, begin: int, at: int, cache_count: int) -> None:
        import opcode

        self.begin, self.end = begin, at + 1 + cache_count
        self.cache_count = cache_count
        self.size = at + 1 - begin
        self.number = code[_UNIT * at]
        self.arg = int.from_bytes(code[_UNIT * begin + 1 : _UNIT * (at + 1) : _UNIT], "big")
        self.prefix = b""
        self.is_backward = "BACKWARD" in opcode.opname[self.number]
        self.target: int | None = None
        if self.number in opcode.hasjrel:
            self.target = self.end + (-self.arg if self.is_backward else self.arg)

    def encode(self) -> bytes:
        """Return the prefix and the instruction, with empty caches."""
        import opcode

        out = bytearray(self.prefix)
        for unit in range(self.size - 1, -1, -1):
            number = opcode.EXTENDED_ARG if unit else self.number
            out += bytes((number, self.arg >> _ARG_BITS * unit & 0xFF))
        return bytes(out) + bytes(_UNIT * self.cache_count)


def with_prefixes(code: types.CodeType, prefixes: Mapping[int, bytes | None]) -> types.CodeType:
    """Return ``code`` with ``prefixes[number]`` inserted before each instruction of that number.

    A jump to such an instruction goes to the inserted code, which gets the instruction's location.
    """
    instructions = list(_instructions(code.co_code))
    for instruction in instructions:
        instruction.prefix = prefixes.get(instruction.number) or b""
    new_unit = _new_units(instructions)
    handlers = b"".join(
        encode(new_unit[start], new_unit[start + length] - new_unit[start], new_unit[target], depth)
        for start, length, target, depth in entries(code.co_exceptiontable)
    )
    added_units = {
        instruction.begin: new_unit[instruction.end] - new_unit[instruction.begin] - instruction.end + instruction.begin
        for instruction in instructions
    }
    return copy_code(
        code,
        co_code=b"".join(instruction.encode() for instruction in instructions),
        co_linetable=extend(code.co_linetable, added_units),
        co_exceptiontable=handlers,
    )


def _instructions(code: bytes) -> Iterator[_Instruction]:
    import opcode

    cache_counts: Any = vars(opcode)["_inline_cache_entries"]  # by number in 3.11 and 3.12, by name in 3.13
    begin = at = 0
    while _UNIT * at < len(code):
        number = code[_UNIT * at]
        if number == opcode.EXTENDED_ARG:
            at += 1
            continue
        count = cache_counts[number] if isinstance(cache_counts, list) else cache_counts.get(opcode.opname[number], 0)
        yield _Instruction(code, begin, at, count)
        begin = at = at + 1 + count


def _new_units(instructions: list[_Instruction]) -> dict[int, int]:
    """Set the arguments of jumps; return the new unit of each instruction and of the code's end."""
    has_grown = True
    while has_grown:
        has_grown = False
        new_unit, at = {}, 0
        for instruction in instructions:
            new_unit[instruction.begin] = at
            at += len(instruction.prefix) // _UNIT + instruction.size + instruction.cache_count
            new_unit[instruction.end] = at
        for instruction in instructions:
            if instruction.target is not None:
                distance = new_unit[instruction.target] - new_unit[instruction.end]
                instruction.arg = -distance if instruction.is_backward else distance
                if instruction.arg >> _ARG_BITS * instruction.size:
                    instruction.size += 1
                    has_grown = True
    return new_unit
