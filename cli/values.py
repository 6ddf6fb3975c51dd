"""Types of options and arguments for click, with tfprof's own messages."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import click
import click.shell_completion

from ..collector.moment import parse_moment
from ..formats import values


class Text(click.ParamType):  # type: ignore[type-arg]  # older releases of click have no argument there
    """A text that is not empty; ``check`` returns it, or raises ValueError with a message."""

    name = "text"

    def __init__(self, check: Callable[[str], str] = str) -> None:
        self._check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the checked ``value``; BadParameter if it is empty or invalid."""
        if not value.strip():
            self.fail("it is empty", param, ctx)
        try:
            return self._check(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class WholeNumber(click.ParamType):  # type: ignore[type-arg]  # older releases of click have no argument there
    """A non-negative integer, in plain digits, of at most ``most``."""

    name = "number"

    def __init__(self, most: float = math.inf) -> None:
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; BadParameter if ``value`` is invalid."""
        if isinstance(value, int):
            return value
        try:
            number = values.count(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if number > self._most:
            self.fail(f"{value} is more than {self._most}", param, ctx)
        return number


class Words(click.ParamType):  # type: ignore[type-arg]  # older releases of click have no argument there
    """One or several known words, separated by commas; the value is a tuple."""

    name = "words"

    def __init__(self, known: Sequence[str]) -> None:
        self.known = known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the words; BadParameter if one is unknown."""
        words = tuple(word.strip().lower() for word in value.split(",")) if isinstance(value, str) else value
        unknown = next((word for word in words if word not in self.known), None)
        if unknown is not None:
            self.fail(f"{unknown!r} is not one of {', '.join(self.known)}", param, ctx)
        return tuple(words)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Return the completions of the last word of ``incomplete``."""
        del ctx, param
        prefix, comma, last = incomplete.rpartition(",")
        given_words = prefix.split(",") if prefix else []
        words = [word for word in self.known if word.startswith(last) and word not in given_words]
        return [click.shell_completion.CompletionItem(f"{prefix}{comma}{word}") for word in words]


class Moment(click.ParamType):  # type: ignore[type-arg]  # older releases of click have no argument there
    """A moment of real time in ns.

    Its text is a duration before now (30m, 2h, 3d), a time within the last 24 hours (14:30), or a
    date with or without a time.
    """

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the moment; BadParameter if ``value`` is invalid."""
        if isinstance(value, int):
            return value
        try:
            return parse_moment(value.strip())[0]
        except ValueError:
            self.fail(f"{value!r} is not a time: give 30m, 2h, 3d (that long ago), 14:30, or 2026-01-31", param, ctx)


NON_EMPTY = Text()
NAME = Text(values.job_name)
MOMENT = Moment()
WHOLE = WholeNumber()
#: The largest number of a TCP port.
PORT_MAX: Final = 65535
PORT = WholeNumber(PORT_MAX)
