"""Moves bytecode of Python 3.7 to 3.10, in which some jumps have absolute targets.

A jump to a larger offset may need a longer instruction.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator, List, Tuple

    NewOffset = Callable[[int], int]  # returns the new offset of an old one

_NO_LINE = 0x80  # line increment of a range without a line, in Python 3.10
_UNIT = 1 if sys.version_info < (3, 10) else 2  # bytes per unit of a jump


class _Instruction(object):
    """One instruction with its extensions.

    ``begin`` and ``end`` are old offsets; ``target`` is the old offset that a jump goes to.
    ``prefix`` is code to insert before the instruction.
    """

    __slots__ = ("arg", "begin", "end", "is_relative", "number", "prefix", "target", "units")

    def __init__(self, code: bytes, begin: int, end: int, jumps: tuple[list[int], list[int]]) -> None:
        self.begin, self.end = begin, end
        self.units = (end - begin) // 2
        self.prefix = b""
        self.number = code[end - 2]
        self.arg = int.from_bytes(code[begin + 1 : end : 2], "big")
        self.is_relative = self.number in jumps[1]
        self.target: int | None = None
        if self.is_relative:
            self.target = end + self.arg * _UNIT
        elif self.number in jumps[0]:
            self.target = self.arg * _UNIT


def move_code(code: bytes, size: int, before_return: bytes = b"") -> tuple[bytes, NewOffset]:
    """Return ``code`` moved by ``size`` bytes, and the mapping of old offsets to new ones.

    ``before_return`` holds instructions that are inserted before each return.
    """
    import opcode

    instructions = list(_instructions(code, opcode.EXTENDED_ARG, (opcode.hasjabs, opcode.hasjrel)))
    for instruction in instructions:
        if instruction.number == opcode.opmap["RETURN_VALUE"]:
            instruction.prefix = before_return
    has_grown = True
    while has_grown:
        has_grown = False
        at, new_offsets = size, {}
        for instruction in instructions:
            new_offsets[instruction.begin] = at
            at += len(instruction.prefix) + 2 * instruction.units
        new_offsets[len(code)] = at
        for instruction in instructions:
            if instruction.target is not None:
                end = new_offsets[instruction.begin] + 2 * instruction.units
                origin = end if instruction.is_relative else 0
                instruction.arg = (new_offsets[instruction.target] - origin) // _UNIT
                if instruction.arg >> 8 * instruction.units:
                    instruction.units += 1
                    has_grown = True
    out = bytearray()
    for instruction in instructions:
        out += instruction.prefix
        for unit in range(instruction.units - 1, -1, -1):
            number = opcode.EXTENDED_ARG if unit else instruction.number
            out += bytes((number, instruction.arg >> 8 * unit & 0xFF))
    return bytes(out), new_offsets.__getitem__


def _instructions(code: bytes, extended: int, jumps: tuple[list[int], list[int]]) -> Iterator[_Instruction]:
    begin = 0
    for end in range(2, len(code) + 2, 2):
        if code[end - 2] != extended:
            yield _Instruction(code, begin, end, jumps)
            begin = end


def lnotab(table: bytes, new_offset: NewOffset) -> bytes:
    """Return ``table``, the line table in Python 3.7 to 3.9, changed for the moved code.

    It consists of pairs (byte increment, line increment).
    """
    out, at, last = bytearray(), 0, 0
    for index in range(0, len(table), 2):
        at += table[index]
        lines = table[index + 1]
        if lines:
            new_at = new_offset(at) if at else 0  # the inserted code is on the first line of the body
            out += b"\xff\0" * ((new_at - last) // 255) + bytes(((new_at - last) % 255, lines))
            last = new_at
    return bytes(out)


def linetable(table: bytes, new_offset: NewOffset) -> bytes:
    """Return ``table``, the line table in Python 3.10, changed for the moved code.

    It consists of pairs (bytes, line increment).
    """
    ranges: List[Tuple[int, int]] = []  # end of a range, its line increment
    at = 0
    for index in range(0, len(table), 2):
        at += table[index]
        lines = table[index + 1]
        if ranges and not lines and ranges[-1][1] != _NO_LINE:
            ranges[-1] = (at, ranges[-1][1])
        else:
            ranges.append((at, lines))
    out, last = bytearray(), 0
    for end, lines in ranges:
        size = (new_offset(end) if end else 0) - last
        first_size = min(size, 254)
        further_lines = lines if lines == _NO_LINE else 0
        out += bytes((first_size, lines)) + bytes((254, further_lines)) * ((size - first_size) // 254)
        if (size - first_size) % 254:
            out += bytes(((size - first_size) % 254, further_lines))
        last += size
    return bytes(out)


def lnotab_end(table: bytes, at: int, _size: int, line: int | None) -> bytes:
    """Return the end of the line table ``table`` for code added at ``at``, in Python 3.7 to 3.9.

    ``line`` is relative to the first line of the code. If it is None, the added code belongs to the
    line before it.
    """
    if line is None:
        return b""
    bytes_left, lines_left = at - sum(table[::2]), line - sum(map(_signed, table[1::2]))
    out = bytearray()
    while bytes_left > 255:
        out += b"\xff\0"
        bytes_left -= 255
    while bytes_left or lines_left:
        lines = max(-128, min(127, lines_left))
        out += bytes((bytes_left, lines & 0xFF))
        bytes_left, lines_left = 0, lines_left - lines
    return bytes(out)


def linetable_end(table: bytes, _at: int, size: int, line: int | None) -> bytes:
    """Return the end of the line table ``table`` for ``size`` bytes of added code, in Python 3.10.

    ``line`` is relative to the first line of the code, None if the added code has no line.
    """
    out = bytearray()
    if line is not None:
        lines_left = line - sum(_signed(lines) for lines in table[1::2] if lines != _NO_LINE)
        while not -127 <= lines_left <= 127:
            lines = max(-127, min(127, lines_left))
            out += bytes((0, lines & 0xFF))
            lines_left -= lines
    first, further = (_NO_LINE, _NO_LINE) if line is None else (lines_left & 0xFF, 0)
    while size:
        out += bytes((min(size, 254), first))
        size, first = size - min(size, 254), further
    return bytes(out)


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte
