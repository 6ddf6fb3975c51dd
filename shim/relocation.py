"""Moves bytecode of Python 3.7 to 3.10, where some jumps have absolute targets.

A jump to a larger offset may need a longer instruction.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator, List, Tuple

    NewOffset = Callable[[int], int]  # a new offset for an old one

_NO_LINE = 0x80  # line increment of a range without a line, in Python 3.10
_UNIT = 1 if sys.version_info < (3, 10) else 2  # bytes per unit of a jump


class _Instruction(object):
    """One instruction with its extensions.

    ``begin`` and ``end`` are old offsets; ``target`` is the old offset that a jump goes to.
    """

    __slots__ = ("arg", "before", "begin", "end", "number", "relative", "target", "units")

    def __init__(self, code: bytes, begin: int, end: int, jumps: tuple[list[int], list[int]]) -> None:
        self.begin, self.end = begin, end
        self.units = (end - begin) // 2
        self.before = b""
        self.number = code[end - 2]
        self.arg = int.from_bytes(code[begin + 1 : end : 2], "big")
        self.relative = self.number in jumps[1]
        self.target: int | None = None
        if self.relative:
            self.target = end + self.arg * _UNIT
        elif self.number in jumps[0]:
            self.target = self.arg * _UNIT


def moved(code: bytes, size: int, before_return: bytes = b"") -> tuple[bytes, NewOffset]:
    """Return ``code`` moved by ``size`` bytes, and the mapping of old offsets to new ones.

    ``before_return`` holds instructions that are inserted before each return.
    """
    import opcode

    instructions = list(_instructions(code, opcode.EXTENDED_ARG, (opcode.hasjabs, opcode.hasjrel)))
    for each in instructions:
        if each.number == opcode.opmap["RETURN_VALUE"]:
            each.before = before_return
    grown = True
    while grown:
        grown = False
        at, new_offsets = size, {}
        for each in instructions:
            new_offsets[each.begin] = at
            at += len(each.before) + 2 * each.units
        new_offsets[len(code)] = at
        for each in instructions:
            if each.target is not None:
                origin = new_offsets[each.begin] + 2 * each.units if each.relative else 0
                each.arg = (new_offsets[each.target] - origin) // _UNIT
                if each.arg >> 8 * each.units:
                    each.units += 1
                    grown = True
    out = bytearray()
    for each in instructions:
        out += each.before
        for left in range(each.units - 1, -1, -1):
            out += bytes((opcode.EXTENDED_ARG if left else each.number, each.arg >> 8 * left & 0xFF))
    return bytes(out), new_offsets.__getitem__


def _instructions(code: bytes, extended: int, jumps: tuple[list[int], list[int]]) -> Iterator[_Instruction]:
    begin = 0
    for end in range(2, len(code) + 2, 2):
        if code[end - 2] != extended:
            yield _Instruction(code, begin, end, jumps)
            begin = end


def lnotab(table: bytes, new_offset: NewOffset) -> bytes:
    """Return the line table of Python 3.7 to 3.9: pairs of (byte increment, line increment)."""
    out, at, last = bytearray(), 0, 0
    for index in range(0, len(table), 2):
        at += table[index]
        lines = table[index + 1]
        if lines:
            to = new_offset(at) if at else 0  # the inserted code is on the first line of the body
            out += b"\xff\0" * ((to - last) // 255) + bytes(((to - last) % 255, lines))
            last = to
    return bytes(out)


def linetable(table: bytes, new_offset: NewOffset) -> bytes:
    """Return the line table of Python 3.10: pairs of (bytes, line increment)."""
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
        first = min(size, 254)
        more = lines if lines == _NO_LINE else 0
        out += bytes((first, lines)) + bytes((254, more)) * ((size - first) // 254)
        if (size - first) % 254:
            out += bytes(((size - first) % 254, more))
        last += size
    return bytes(out)
