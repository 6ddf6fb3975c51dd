"""Line tables of moved code."""

from tfprof.shim.cpython import code_tables

OFFSET_SHIFT = 6


def lines(table: bytes) -> dict[int, int | None]:
    """Return a dict from the offset of each instruction to its line, None if it has no line.

    ``table`` is a line table of Python 3.10.
    """
    line_of_offset: dict[int, int | None] = {}
    at = line = 0
    for size, increment in zip(table[::2], table[1::2], strict=True):
        if increment != 0x80:
            line += increment - 256 if increment > 0x80 else increment
        for offset in range(at, at + size, 2):
            line_of_offset[offset] = None if increment == 0x80 else line
        at += size
    return line_of_offset


def test_instructions_after_a_range_without_a_line_keep_their_lines() -> None:
    table = bytes((4, 1, 6, 0x80, 8, 0, 4, 2, 250, 0x80, 250, 0x80, 2, 255))
    moved = {at: at + OFFSET_SHIFT for at in range(sum(table[::2]) + 1)}
    lines_before, lines_after = lines(table), lines(code_tables.linetable(table, moved))
    assert {at - OFFSET_SHIFT: line for at, line in lines_after.items() if at >= OFFSET_SHIFT} == lines_before
