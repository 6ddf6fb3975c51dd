"""The text that the TF profiler prints around a view on standard output.

It includes the table of options.
"""

from collections.abc import Iterator
from typing import Any, Final

from ..tfviews.options import TABLE, Options

BEFORE: Final = ("", "=========================Options=============================")
BETWEEN: Final = ("", "==================Model Analysis Report======================")
AFTER: Final = ("", "======================End of Report==========================")


def value_text(value: Any) -> str:
    """Return an option's value in the TF profiler's form: lists with commas, columns by name."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    return ",".join(value) if isinstance(value, tuple) and not hasattr(value, "_fields") else str(value)


def table(options: Options) -> Iterator[str]:
    """Yield a line for each option."""
    for option in TABLE:
        yield f"{'-' + option.name:<28}{value_text(getattr(options, option.name))}"
