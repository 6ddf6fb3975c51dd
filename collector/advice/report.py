"""Findings of a checker: text, numbers, and remedy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .evidence import Evidence


@dataclass(frozen=True, slots=True)
class Report:
    """A finding: text, numbers by name (with units), the remedy, and the user's line, if any."""

    text: str
    numbers: Mapping[str, float | str] = field(default_factory=dict)
    remedy: str = ""
    line: str = ""


class Checker(NamedTuple):
    """A checker: its name in messages, its slug in docs/advice.md, its heading and its function.

    `in_tf_profiler`: the TF profiler has this checker, too.
    """

    name: str
    slug: str
    title: str
    check: Callable[[Evidence], Sequence[Report]]
    in_tf_profiler: bool = False


class Advice(NamedTuple):
    """The reports of one checker, empty if it found nothing."""

    checker: Checker
    reports: tuple[Report, ...]
