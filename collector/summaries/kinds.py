"""Which steps: their kinds and ranges as users name them, and the choice of a job's main kind.

Calls of different functions are different steps: each function is a separate kind, `function:NAME`.
A kind is a whole number. Its low 16 bits are the span kind. If the kind is one function, the bits
above are the span key of the function. Activities have numbers and names of the same form.
"""

import re
import zlib
from collections.abc import Mapping
from typing import Any, Final

from ...formats import activities, layout, span_kinds, step_kinds
from ..errors import UsageError

#: The word for all kinds.
ALL: Final = "all"
#: Kinds of steps by name, without those of single functions; jobs that are read may add some.
KINDS_BY_NAME: Final = span_kinds.STEPS
#: Names of the kinds of a session's runs.
RUN_KIND_NAMES: Final = frozenset(layout.SPAN_NAMES[kind] for kind in layout.RUN_KINDS)

#: Prefix of the name of a kind that is one function.
FUNCTION_PREFIX: Final = f"{layout.SPAN_NAMES[layout.FUNCTION]}:"
_KEY_SHIFT: Final = 16
#: Matches the function names that can be NAME in `function:NAME`. The kind of any other function is
#: named by the key. A name of more than 63 characters may have been truncated.
_FUNCTION_NAME: Final = re.compile(r"[^,\s#][^,\s]{0,62}")
#: Names of functions by the keys of their spans.
FunctionNames = Mapping[int, str]
NO_FUNCTION_NAMES: Final[FunctionNames] = {}
_RANGE: Final = re.compile(r"([0-9]{1,18})(?:(-)([0-9]{1,18})?)?", re.ASCII)
#: The last step of a range without an end.
LAST_STEP: Final = (1 << 63) - 1


def step_kind_of(kind: int, key: int) -> int:
    """Return the kind of a step or an activity from the kind and the key of its span."""
    return kind | key << _KEY_SHIFT if kind in (layout.FUNCTION, layout.ACTIVITY) else kind


def span_kind(kind: int) -> int:
    """Return the span kind of a kind of step."""
    return kind & (1 << _KEY_SHIFT) - 1


def is_activity(kind: int) -> bool:
    """Return whether a kind is one of activities, which are no steps."""
    return span_kind(kind) == layout.ACTIVITY


def function_key(kind: int) -> int:
    """Return the span key of a kind that is one function or activity, else 0."""
    return kind >> _KEY_SHIFT


def kind_name(kind: int, functions: FunctionNames = NO_FUNCTION_NAMES) -> str:
    """Return the name of a kind; ``functions``: names of functions by key."""
    key = function_key(kind)
    if not key:
        return span_kinds.name_of(kind)
    if is_activity(kind):
        return f"{activities.category_of(key)} {activities.label_of(key, functions)}"
    name = functions.get(key, "")
    return FUNCTION_PREFIX + (name if _FUNCTION_NAME.fullmatch(name) else f"#{key:x}")


def _kind_of_word(word: str) -> int | None:
    """Return the kind that a word names, None if it names none."""
    if not word.startswith(FUNCTION_PREFIX):
        return KINDS_BY_NAME.get(word)
    name = word.removeprefix(FUNCTION_PREFIX)
    try:
        key = int(name[1:], 16) if name.startswith("#") else zlib.crc32(name.encode("utf-8", "surrogateescape"))
    except ValueError:
        return None
    return step_kind_of(layout.FUNCTION, key) if name and key < 1 << 32 else None


def parse_kinds(text: str) -> tuple[int, ...]:
    """Parse `KIND[,KIND]` or `all`; `function:NAME` is one function.

    UsageError ``no-such-kind`` for an unknown kind.
    """
    words = [word.strip() for word in text.split(",")]
    if words == [ALL]:
        return span_kinds.steps()
    kinds = {word: _kind_of_word(word) for word in words}
    unknown = next((word for word, kind in kinds.items() if kind is None), None)
    if unknown is not None:
        choices = ", ".join([*KINDS_BY_NAME, f"{FUNCTION_PREFIX}NAME"])
        raise UsageError(f"no kind of step is called '{unknown[:40]}': {choices}, or {ALL}", slug="no-such-kind")
    order = span_kinds.steps().index
    return tuple(sorted({kind for kind in kinds.values() if kind is not None}, key=lambda kind: order(span_kind(kind))))


def parse_steps(text: str | None) -> tuple[int, int] | None:
    """Parse `A`, `A-B`, or `A-` without a last step; None selects all steps, as None."""
    if text is None:
        return None
    match = _RANGE.fullmatch(text)
    first, last = (int(match[1]), int(match[3] or (LAST_STEP if match[2] else match[1]))) if match else (1, 0)
    if first > last:
        hint = "the first and the last step, such as 10-20 or 10-"
        raise UsageError(f"Invalid option '--steps' value: '{text}' ({hint})")
    return first, last


def by_kind(numbers: object) -> dict[int, int]:
    """Return a job's counts or times by number of kind instead of by name.

    Entries with no positive number, or with an unknown kind, are left out.
    """
    by_name: Mapping[Any, Any] = numbers if isinstance(numbers, Mapping) else {}
    return {
        kind: by_name[name]
        for name, kind in KINDS_BY_NAME.items()
        if isinstance(by_name.get(name), int) and by_name[name] > 0
    }


def main_kind_of(present_kinds: Mapping[int, object], times: Mapping[int, int]) -> int | None:
    """Return the main kind among ``present_kinds``, None if there is none.

    It is the kind with the most weighted time, in which training counts more
    (step_kinds.main_kind). Without times, it is the first kind in the order of span_kinds.steps.
    """
    kind_times = {kind: times[kind] for kind in present_kinds if times.get(kind)}
    return (
        step_kinds.main_kind(kind_times, span_kinds.KINDS)
        if kind_times
        else next((kind for kind in span_kinds.steps() if kind in present_kinds), None)
    )


def end_of(steps: tuple[int, int]) -> int | None:
    """Return the last step of a range, None if the range is open."""
    return None if steps[1] == LAST_STEP else steps[1]


def range_text(first: int, last: int) -> str:
    """Return the range as a user types it: `7`, `7-9`, or `7-` without an end."""
    return str(first) if first == last else f"{first}-{'' if last == LAST_STEP else last}"
