"""Notices kinds of steps whose recordings have no op although ops ran."""

from typing import Final

from ...formats import layout, span_kinds

#: Number of traced steps in a row without an op that are reported.
_REPORTED_STEPS: Final = 3
SLUG: Final = "no-ops"


class EmptySteps:
    """The traced steps in a row without an op, by kind; each function is a kind of its own."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, int], int] = {}
        self._reported: set[tuple[int, int]] = set()

    def copy(self) -> "EmptySteps":
        """Return a copy."""
        copied = EmptySteps()
        copied._counts, copied._reported = dict(self._counts), set(self._reported)
        return copied

    def note(self, kind: int, key: int, *, is_empty: bool) -> bool:
        """Note a step; return whether its kind is to be reported, which happens once."""
        kind_of_step = kind, key if kind == layout.FUNCTION else 0
        if not is_empty:
            self._counts.pop(kind_of_step, None)
            return False
        self._counts[kind_of_step] = self._counts.get(kind_of_step, 0) + 1
        if self._counts[kind_of_step] < _REPORTED_STEPS or kind_of_step in self._reported:
            return False
        self._reported.add(kind_of_step)
        return True


def event_text(kind: int, function: str | None) -> str:
    """Return the text of the event about steps of ``kind``, or of those that call ``function``."""
    name = span_kinds.name_of(kind) + (f":{function}" if function else "")
    return (
        f"{_REPORTED_STEPS} traced {name} steps in a row have no op: either none ran in this process,"
        " or this version of TensorFlow records ops in a way that tfprof does not know"
    )
