"""Completion of a line in the shell: commands, options, and values of options."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from ..collector.exporters.table import outputs
from ..collector.query.engine import VIEWS
from ..collector.tfviews.option_values import BOOLEAN, ORDER, ORDERS, OUTPUT, REGEXES, SELECT, SELECTS
from ..collector.tfviews.options import TABLE, Option
from ..formats.exports import VIEW_EXPORTERS
from .shell_line import COMMANDS, OPTIONS, STEP_KIND

#: Maximum number of completions.
COMPLETIONS_MAX: Final = 200
#: Types of values that are lists, separated by commas.
_LIST_TYPES: Final = frozenset({SELECT, REGEXES, STEP_KIND.value_type})

#: Function from (view, option) to the known values of the option.
NameLookup = Callable[[str, str], Iterable[str]]


class Completions(NamedTuple):
    """Texts that may replace the last ``length`` characters.

    ``adds_space``: a space follows each text.
    """

    length: int
    texts: list[str]
    adds_space: bool = False


def _with_prefix(texts: Iterable[str], prefix: str) -> list[str]:
    matches = []
    for text in texts:
        if text.startswith(prefix):
            matches.append(text)
            if len(matches) == COMPLETIONS_MAX:
                break
    return matches


def _outputs(view: str) -> Iterator[str]:
    allowed = frozenset[str]().union(*(outputs(name) for name in ([view] if view in VIEWS else VIEWS)))
    for output in sorted(allowed):
        yield f"{output}:outfile=" if output in VIEW_EXPORTERS else output


def _values(option: Option, view: str, names: NameLookup) -> Iterable[str]:
    fixed_values = {ORDER: ORDERS, SELECT: SELECTS, BOOLEAN: ("true", "false")}
    if option.value_type in fixed_values:
        return fixed_values[option.value_type]
    if option.value_type is OUTPUT:
        return _outputs(view)
    return names(view, option.name)


def complete(text: str, names: NameLookup) -> Completions:
    """Return completions of ``text``, a line up to the cursor.

    ``names`` looks up names in the jobs.
    """
    *before, last = text.split(" ")
    words = [word for word in before if word]
    if not words:
        return Completions(len(last), _with_prefix(COMMANDS, last), adds_space=True)
    command = words[0]
    if command == "help":
        return Completions(len(last), _with_prefix(VIEWS, last))
    option = OPTIONS.get(words[-1]) if len(words) > 1 else None
    if option is None or (option.value_type is BOOLEAN and last.startswith("-")):
        return Completions(
            len(last),
            _with_prefix((f"-{known_option.name}" for known_option in (*TABLE, STEP_KIND)), last),
            adds_space=True,
        )
    piece = last.rpartition(",")[2] if option.value_type in _LIST_TYPES else last
    return Completions(len(piece), _with_prefix(_values(option, command, names), piece))
