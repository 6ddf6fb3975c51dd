"""Line tables of moved code."""

from tfprof.shim import relocation

MOVED = 6


def lines(table: bytes) -> dict[int, int | None]:
    """Return the line of each instruction by its offset, None for no line.

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
    before, after = lines(table), lines(relocation.linetable(table, lambda at: at + MOVED))
    assert {at - MOVED: line for at, line in after.items() if at >= MOVED} == before
