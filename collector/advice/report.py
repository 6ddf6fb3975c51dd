"""Findings of a checker: text, numbers, and remedy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .evidence import Evidence


@dataclass(frozen=True, slots=True)
class Report:
    """A finding: text, numbers by name (with units), the remedy, and the user's line, if any.

    ``saving``: the share of the time of the job's steps and pauses that the remedy saves at most, 0
    if unknown. ``verdict``: a clause about the job, '' for that of the checker. ``of_host``: other
    processes are the cause.
    """

    text: str
    numbers: Mapping[str, float | str] = field(default_factory=dict)
    remedy: str = ""
    line: str = ""
    saving: float = 0.0
    verdict: str = ""
    of_host: bool = False


class Checker(NamedTuple):
    """A checker: its name in messages, its slug in docs/advice.md, its heading and its function.

    `missing` returns what the job lacks for this check. `verdict`: a clause about a job with such a
    finding, '' if the checker only informs. `rank`: findings of a lower rank come first.
    `in_tf_profiler`: the TF profiler has this checker, too.
    """

    name: str
    slug: str
    title: str
    check: Callable[[Evidence], Sequence[Report]]
    missing: Callable[[Evidence], str]
    verdict: str
    rank: int = 2
    in_tf_profiler: bool = False


class Advice(NamedTuple):
    """The reports of one checker, empty if it found nothing; what it lacked, empty if nothing."""

    checker: Checker
    reports: tuple[Report, ...]
    missing: str = ""
