"""A selected range of steps: its open end, and its text."""

from typing import Final

#: The last step of a range without an end.
LAST_STEP: Final = (1 << 63) - 1


def end_of(steps: tuple[int, int]) -> int | None:
    """Return the last step of a range, None if the range is open."""
    return None if steps[1] == LAST_STEP else steps[1]


def range_text(first: int, last: int) -> str:
    """Return the range as a user types it: `7`, `7-9`, or `7-` without an end."""
    return str(first) if first == last else f"{first}-{'' if last == LAST_STEP else last}"
