"""Inserts instructions into bytecode, and adjusts its jumps.

Each jump gets an argument of two bytes, so that a longer distance fits.
"""

from __future__ import annotations

import opcode
from typing import Any, Iterator, Mapping, Tuple

Moved = Tuple[bytes, Mapping[int, int]]  # the new code; the new offset of each old instruction and of the end

_JUMPS = frozenset([*opcode.hasjrel, *opcode.hasjabs])
_UNIT = 2  # bytes of an instruction, of each of its extensions and of each of its inline caches


class _Instruction(object):
    """An instruction from ``begin`` to ``end``, with extensions and caches.

    ``raw`` are its bytes, ``size`` is the number of bytes of the new one. A jump goes to the old
    offset ``target``: over a distance times ``direction``, or to an absolute offset if this is 0.
    ``jump_unit`` is the unit of its argument, in bytes.
    """

    __slots__ = ("caches", "direction", "end", "jump_unit", "number", "raw", "size", "target", "units")

    def __init__(self, code: bytes, begin: int, at: int, end: int, jump_unit: int) -> None:
        self.end, self.number, self.raw, self.size = end, code[at], code[begin:end], end - begin
        self.target: int | None = None
        if self.number not in _JUMPS:
            return
        arg = int.from_bytes(code[begin + 1 : at + _UNIT : _UNIT], "big")
        self.units, self.caches = max((at - begin) // _UNIT + 1, 2), bytes(end - at - _UNIT)
        self.size = _UNIT * self.units + len(self.caches)
        self.jump_unit, self.direction, self.target = jump_unit, 0, arg * jump_unit
        if self.number in opcode.hasjrel:
            self.direction = -1 if "BACKWARD" in opcode.opname[self.number] else 1
            self.target = end + self.direction * arg * jump_unit

    def encode(self, new_offsets: Mapping[int, int]) -> bytes:
        """Return the new instruction with its caches."""
        if self.target is None:
            return self.raw
        distance = new_offsets[self.target]
        if self.direction:
            distance = (distance - new_offsets[self.end]) * self.direction
        numbers = [opcode.EXTENDED_ARG] * (self.units - 1) + [self.number]
        args = (distance // self.jump_unit).to_bytes(self.units, "big")
        return bytes(byte for pair in zip(numbers, args) for byte in pair) + self.caches


def insert(code: bytes, head: bytes, at: int, jump_unit: int, prefixes: Mapping[int, bytes]) -> Moved:
    """Return ``code`` with ``head`` inserted at ``at``, and the new offset of each old instruction.

    ``prefixes[number]`` is inserted before each instruction of that number. A jump to such an
    instruction goes to the inserted code, but a jump to ``at`` goes to the code after ``head``.
    ``jump_unit`` is the unit of a jump's argument, in bytes.
    """
    instructions = list(_instructions(code, jump_unit))
    new_at = 0 if at else len(head)
    new_offsets = {0: new_at}
    for instruction in instructions:
        new_at += len(prefixes.get(instruction.number, b"")) + instruction.size
        new_at += len(head) if instruction.end == at else 0
        new_offsets[instruction.end] = new_at
    out = b"" if at else head
    for instruction in instructions:
        out += prefixes.get(instruction.number, b"") + instruction.encode(new_offsets)
        out += head if instruction.end == at else b""
    return out, new_offsets


def _instructions(code: bytes, jump_unit: int) -> Iterator[_Instruction]:
    cache_counts: Any = vars(opcode).get("_inline_cache_entries", {})  # by number in 3.11 and 3.12, else by name
    begin = at = 0
    while at < len(code):
        number = code[at]
        at += _UNIT
        if number == opcode.EXTENDED_ARG:
            continue
        count = cache_counts[number] if isinstance(cache_counts, list) else cache_counts.get(opcode.opname[number], 0)
        end = at + _UNIT * count
        yield _Instruction(code, begin, at - _UNIT, end, jump_unit)
        begin = at = end
