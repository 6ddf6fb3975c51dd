"""Kinds of steps: their names, and which of several a job is about."""

from collections.abc import Mapping
from typing import Any, Final

from ...formats import layout, step_kinds
from ..errors import UsageError

#: The word for all kinds.
ALL: Final = "all"
#: Kinds that are steps, by name.
NUMBERS: Final = {layout.SPAN_NAMES[kind]: kind for kind in layout.STEP_KINDS}


def named(kind: int) -> str:
    """Return the name of a kind."""
    return layout.SPAN_NAMES.get(kind, str(kind))


def from_text(text: str) -> tuple[int, ...]:
    """Read `KIND[,KIND]` or `all`; UsageError ``no-such-kind`` where one is none."""
    words = [word.strip() for word in text.split(",")]
    if words == [ALL]:
        return layout.STEP_KINDS
    wrong = next((word for word in words if word not in NUMBERS), None)
    if wrong is not None:
        raise UsageError(
            f"no kind of step is called '{wrong[:40]}': {', '.join(NUMBERS)}, or {ALL}", slug="no-such-kind"
        )
    return tuple(kind for kind in layout.STEP_KINDS if named(kind) in words)


def of_names(numbers: object) -> dict[int, int]:
    """Return counts or times that a job tells by the names of kinds, by the kinds' numbers.

    Entries that are no positive number, or of no kind of step, are left out.
    """
    by_name: Mapping[Any, Any] = numbers if isinstance(numbers, Mapping) else {}
    return {
        kind: by_name[name]
        for name, kind in NUMBERS.items()
        if isinstance(by_name.get(name), int) and by_name[name] > 0
    }


def leading(present: Mapping[int, object], times: Mapping[int, int]) -> int | None:
    """Return the kind that a job is about, of those that are ``present``; where no time is known, the first that there is."""
    known = {kind: times[kind] for kind in present if times.get(kind)}
    return step_kinds.leading(known) if known else next((kind for kind in layout.STEP_KINDS if kind in present), None)
