"""Findings of a checker: text, numbers, and what to do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .evidence import Evidence


@dataclass(frozen=True, slots=True)
class Report:
    """A finding: sentences, their numbers by name (units in the names), what to do about it, and the user's own line, if any."""

    text: str
    numbers: Mapping[str, float | str] = field(default_factory=dict)
    todo: str = ""
    line: str = ""


class Checker(NamedTuple):
    """A checker: its name in messages, its slug in docs/advice.md, its heading, its function; `tfprofs`: whether tfprof has it too."""

    name: str
    slug: str
    title: str
    check: Callable[[Evidence], Sequence[Report]]
    tfprofs: bool = False


class Advice(NamedTuple):
    """The reports of one checker, none where it has nothing to say."""

    checker: Checker
    reports: tuple[Report, ...]
