"""The kinds of spans by name, role and weight, as the hello of each job declares them.

The numbers in a channel are its job's own (docs/channel.md). The collector has one number for each
name. A name in `layout` has the number there. The number of any other name is computed from the
name.
"""

from __future__ import annotations

import re
import zlib
from typing import Any, Mapping, NamedTuple

from . import layout

_DECLARED_FROM, _DECLARED_TO = 1 << 8, 1 << 16
_WEIGHT_MAX = 1000
#: Maximum number of known kinds: jobs of other hosts may declare any number of names.
KNOWN_MAX = 1024
_NUMBER = re.compile("[0-9]{1,2}")
_NAME = re.compile("[a-z][a-z0-9_]{0,31}")


class Kind(NamedTuple):
    """A kind of spans; ``weight`` multiplies the time in its steps when the main kind is chosen."""

    name: str
    role: str
    weight: int


#: The kinds of jobs that declare none, by number: those of TensorFlow.
UNDECLARED = {number: Kind(*row) for number, row in layout.KINDS.items()}
_NUMBERS = {kind.name: number for number, kind in UNDECLARED.items()}
#: The kinds of all jobs that were read, by the collector's number. The numbers of the kinds of
#: steps, by name. Only `declare` changes both.
KINDS = dict(UNDECLARED)
STEPS = {KINDS[number].name: number for number in layout.STEP_KINDS}


def declared(kinds: object) -> dict[int, Kind]:
    """Return the kinds that ``kinds`` of a hello declares, by number; invalid ones are left out."""
    rows = kinds if isinstance(kinds, dict) else {}
    valid = {int(number): Kind(*row[:3]) for number, row in rows.items() if _NUMBER.fullmatch(number) and _is_kind(row)}
    return {number: kind for number, kind in valid.items() if number < layout.KINDS_MAX}


def _is_kind(row: Any) -> bool:
    if not isinstance(row, list) or [type(value) for value in row[:3]] != [str, str, int]:
        return False
    return all(map(_NAME.fullmatch, row[:2])) and 0 <= row[2] <= _WEIGHT_MAX


def document(kinds: Mapping[int, Kind]) -> dict[str, Any]:
    """Return ``kinds`` in the notation of the hello."""
    return {str(number): list(kind) for number, kind in kinds.items()}


def declare(kinds: object) -> dict[int, int]:
    """Make the kinds that ``kinds`` of a hello declares known.

    Return the collector's number of each kind that has another number in the job's channel. The
    first declaration of a name counts. Kinds beyond KNOWN_MAX count as no steps, and their number
    is their name.
    """
    numbers = {}
    for number, kind in declared(kinds).items():
        known = numbers[number] = number_of(kind.name)
        if known not in KINDS and len(KINDS) < KNOWN_MAX:
            KINDS[known] = kind
            if kind.role == layout.STEP_ROLE:
                STEPS[kind.name] = known
    return {number: known for number, known in numbers.items() if number != known}


def number_of(name: str) -> int:
    """Return the collector's number of the kind ``name``, the same in all processes."""
    hashed = _DECLARED_FROM + zlib.crc32(name.encode()) % (_DECLARED_TO - _DECLARED_FROM)
    return _NUMBERS.get(name, hashed)


def name_of(number: int) -> str:
    """Return the name of a kind by the collector's number; the number itself if it is unknown."""
    return KINDS[number].name if number in KINDS else str(number)


def is_step(number: int) -> bool:
    """Return whether the spans of a kind, by the collector's number, are steps."""
    return number in KINDS and KINDS[number].role == layout.STEP_ROLE


def steps() -> tuple[int, ...]:
    """Return the numbers of all kinds of steps, the most important ones first."""
    return tuple(sorted(STEPS.values(), key=lambda number: -KINDS[number].weight))


def others() -> tuple[int, ...]:
    """Return the numbers of the declared kinds that are no steps, without those in `layout`."""
    return tuple(number for number in KINDS if number not in UNDECLARED and not is_step(number))
