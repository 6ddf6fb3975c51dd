"""Values of options and arguments as click reads them, refused in our words where they are none."""

from collections.abc import Callable
from typing import Any

import click

from ..formats import values


class Text(click.ParamType):  # type: ignore[type-arg]  # older releases of click have no argument there
    """A text that says something; ``check`` returns it, or raises ValueError with what is wrong with it."""

    name = "text"

    def __init__(self, check: Callable[[str], str] = str) -> None:
        self._check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return ``value``; BadParameter when it is empty."""
        if not value.strip():
            self.fail("it is empty", param, ctx)
        try:
            return self._check(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Whole(click.ParamType):  # type: ignore[type-arg]  # older releases of click have no argument there
    """A whole number from 0, in plain digits."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; BadParameter when ``value`` is none."""
        number = value if isinstance(value, int) else values.whole(value)
        if number is None:
            self.fail(f"{value!r} is no whole number from 0", param, ctx)
        return number


GIVEN = Text()
NAME = Text(values.job_name)
WHOLE = Whole()
