"""The TF profiler's spelling of options: one dash or two, underscores or dashes in names."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ..collector.errors import UsageError
from ..collector.suggestion import suggestion
from ..collector.tfviews.option_values import FALSE_WORDS, TRUE_WORDS
from ..collector.tfviews.options import TABLE


def spellings(names: Sequence[str]) -> dict[str, str]:
    """Map each spelling of the options ``names`` to the spelling that click expects."""
    return {
        dashes + spelling: f"--{name.replace('_', '-')}"
        for name in names
        for dashes in ("-", "--")
        for spelling in (name, name.replace("_", "-"))
    }


#: Spellings of the views' options.
SPELLINGS: Final = spellings([option.name for option in TABLE])
#: Options that mean true if no value follows.
BOOLEAN_OPTIONS: Final = frozenset({"--account-displayed-op-only"})
#: An option in the TF profiler's spelling, which click would read as single letters.
_ONE_DASH: Final = re.compile(r"-[A-Za-z][A-Za-z_-]+")


def translate(
    arguments: Sequence[str],
    command: str = "COMMAND",
    flags: Sequence[str] = (),
    other_spellings: Mapping[str, str] | None = None,
) -> list[str]:
    """Return ``arguments`` with known options as `--name=value`; other words are unchanged.

    ``other_spellings`` maps spellings of further options of ``command`` to those that click
    expects. ``flags``: options without a value. UsageError for an unknown option that has one
    dash and several letters.
    """
    all_spellings = {**SPELLINGS, **(other_spellings or {})}
    words: list[str] = []
    remaining = list(arguments)
    while remaining:
        word = remaining.pop(0)
        if word == "--":
            return [*words, word, *remaining]
        name, equals, value = word.partition("=")
        option = all_spellings.get(name)
        if option is None:
            if _ONE_DASH.fullmatch(name):
                hint = suggestion(
                    name.lstrip("-").replace("-", "_"), [spelling.lstrip("-") for spelling in all_spellings]
                )
                raise UsageError(f"no such option {name}{hint} (tfprof {command} --help)")
            words.append(word)
        elif equals:
            words.append(f"{option}={value}")
        elif option in flags:
            words.append(option)
        elif option in BOOLEAN_OPTIONS:
            has_value = bool(remaining) and remaining[0].lower() in TRUE_WORDS | FALSE_WORDS
            words.append(f"{option}={remaining.pop(0) if has_value else 'true'}")
        else:
            words.append(f"{option}={remaining.pop(0)}" if remaining else option)
    return words
