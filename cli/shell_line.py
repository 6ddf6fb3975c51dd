"""Parses lines of the shell: a command, then options with their values, separated by spaces."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ..collector.errors import ViewOptionError
from ..collector.suggestion import suggestion
from ..collector.summaries.kinds import parse_kinds
from ..collector.tfviews.option_values import BOOLEAN, ValueType, invalid, text_of
from ..collector.tfviews.options import TABLE, Option
from .arguments import SPELLINGS

#: Commands with their lines in `help`.
COMMANDS: Final = {
    "scope": "nodes in the tree of their names",
    "graph": "nodes, each below a node that uses it",
    "op": "op types",
    "code": "lines of Python in the tree of calls",
    "advise": "advice on performance",
    "set": "make options the defaults of this session",
    "help": "this list, or the options of a view: help op",
    "history": "the lines entered so far",
    "exit": "end, as do quit and Ctrl-D",
    "quit": "end",
}
#: Option of views and `set` that the TF profiler lacks: the kinds of steps.
STEP_KIND: Final = Option(
    "kind",
    ValueType(lambda _name, value: parse_kinds(value), lambda _name, value: parse_kinds(text_of("kind", value))),
    "KIND",
    "only steps of this kind, such as batch or train, of several kinds (KIND,KIND), or of all",
)
#: Options by every spelling.
OPTIONS: Final = {"-kind": STEP_KIND, "--kind": STEP_KIND} | {
    spelling: option
    for option in TABLE
    for spelling, name in SPELLINGS.items()
    if name == f"--{option.name.replace('_', '-')}"
}


class LineError(ViewOptionError):
    """A line with an unknown command or option."""


class ParsedLine(NamedTuple):
    """A parsed line: texts of options by name, words of commands without options."""

    command: str
    texts: dict[str, str]
    words: tuple[str, ...] = ()


_WITHOUT_OPTIONS: Final = frozenset({"help", "history", "exit", "quit"})


def parse(text: str) -> ParsedLine:
    """Parse a line; UsageError if it is invalid."""
    command, *words = text.split()
    if command not in COMMANDS:
        message = f"no such command {command!r}{suggestion(command, COMMANDS)} (help)"
        raise LineError(message, "First string must be a valid command.")
    if command in _WITHOUT_OPTIONS:
        return ParsedLine(command, {}, tuple(words))
    texts = {}
    position = 0
    while position < len(words):
        name, equals, value = words[position].partition("=")
        option = OPTIONS.get(name)
        if option is None:
            message = f"no such option {words[position]!r}{suggestion(name, OPTIONS)} (help {command})"
            raise LineError(
                message, f"Invalid option '{words[position]}' value: '{''.join(words[position + 1 : position + 2])}'"
            )
        position += 1
        if not equals:
            value, word_count = _value(option, words[position:])
            position += word_count
        texts[option.name] = value
    return ParsedLine(command, texts)


def _value(option: Option, words: Sequence[str]) -> tuple[str, int]:
    """Return an option's value, and the number of words that it takes."""
    if option.value_type is BOOLEAN and (not words or words[0].startswith("-")):
        return "true", 0
    if not words:
        raise invalid(option.name, "")
    return words[0], 1
