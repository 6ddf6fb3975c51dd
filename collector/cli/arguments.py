"""tfprof's own way of spelling options: one dash or two, underscores or dashes, lists with commas."""

import re
from collections.abc import Sequence
from typing import Final

from tfprof.collector.errors import UsageError
from tfprof.collector.views.options import TABLE
from tfprof.collector.views.values import FALSE_WORDS, TRUE_WORDS

#: Both spellings of each option of the views, and the one that click is given.
SPELLINGS: Final = {
    dashes + spelling: f"--{option.name.replace('_', '-')}"
    for option in TABLE
    for dashes in ("-", "--")
    for spelling in (option.name, option.name.replace("_", "-"))
}
#: Options that mean true when no value follows.
TRUTHS: Final = frozenset({"--account-displayed-op-only"})
#: Looks like an option in tfprof's spelling; click would take it for single letters.
_SINGLE: Final = re.compile(r"-[A-Za-z][A-Za-z_-]+")


def translate(arguments: Sequence[str]) -> list[str]:
    """Return ``arguments`` with tfprof's options as `--name=value`; other words are left as they are."""
    words: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*words, word, *rest]
        name, equals, value = word.partition("=")
        option = SPELLINGS.get(name)
        if option is None:
            if _SINGLE.fullmatch(name):
                raise UsageError(f"no such option {name}: tfprof op --help lists them")
            words.append(word)
        elif equals:
            words.append(f"{option}={value}")
        elif option in TRUTHS:
            follows = bool(rest) and rest[0].lower() in TRUE_WORDS | FALSE_WORDS
            words.append(f"{option}={rest.pop(0) if follows else 'true'}")
        else:
            words.append(f"{option}={rest.pop(0)}" if rest else option)
    return words
