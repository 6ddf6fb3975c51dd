"""`tfprof completion`: prints completion scripts for shells, and answers their requests."""

import contextlib
import os
from collections.abc import Sequence
from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from ..collector.exporters.table import outputs
from ..collector.query.engine import VIEWS
from ..collector.summaries.kinds import ALL, KINDS_BY_NAME
from ..collector.tfviews.option_values import ORDER, ORDERS, OUTPUT, SELECT, SELECTS
from ..collector.tfviews.options import TABLE
from ..commands.streams import clean, print_lines
from .arguments import SPELLINGS
from .main import COMPLETION_VARIABLE

SHELLS: Final = ("bash", "zsh", "fish")
#: Installation by shell: the line and the file that it goes into.
_INSTALLATION: Final = {
    "bash": 'eval "$(tfprof completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(tfprof completion zsh)"   in ~/.zshrc, after compinit',
    "fish": "tfprof completion fish > ~/.config/fish/completions/tfprof.fish",
}
_VALUES: Final = {
    "kinds": (ALL, *KINDS_BY_NAME),
    **{
        option.name: {ORDER: ORDERS, SELECT: SELECTS}[option.value_type]
        for option in TABLE
        if option.value_type in {ORDER, SELECT}
    },
}


@click.command(epilog="\b\n" + "\n".join(_INSTALLATION.values()))
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script for SHELL: bash, zsh or fish.

    It completes commands, options, values and jobs.
    """
    print_lines(_source(shell).split("\n"))


def _source(shell: str) -> str:
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    if shell == "bash":  # click runs bash to check its version; the script itself reports a bash that is too old
        return str(
            shell_class.source_template % shell_class(click.Group(), {}, "tfprof", COMPLETION_VARIABLE).source_vars()
        )
    return shell_class(click.Group(), {}, "tfprof", COMPLETION_VARIABLE).source()


def answer(command: click.Command) -> int:
    """Print completions of the line that the environment contains; return the exit status."""
    shell = os.environ.get(COMPLETION_VARIABLE, "").partition("_")[0]
    shell_class = get_completion_class(shell) if shell in SHELLS else None
    if shell_class is None:
        return 1
    completer = shell_class(command, {}, "tfprof", COMPLETION_VARIABLE)
    with contextlib.suppress(Exception):  # messages would garble the shell's line
        words, last = completer.get_completion_args()
        items = [
            *_view_completions(words, last),
            *completer.get_completions([SPELLINGS.get(word, word) for word in words], last),
        ]
        items = [CompletionItem(clean(item.value), item.type, item.help and clean(item.help)) for item in items]
        items = list(filter(None, map(_without_commas, items))) if shell == "fish" else items
        text = "\n".join(map(completer.format_completion, items))
        print_lines(text.split("\n"), kept="\t")  # a tab is in front of fish's help texts
    return 0


def _without_commas(item: CompletionItem) -> CompletionItem | None:
    """Return ``item`` without commas, which separate fields in fish's script.

    Commas in its help become semicolons. None if its value has a comma.
    """
    if "," in item.value:
        return None
    return CompletionItem(item.value, type=item.type, help=(item.help or "").replace(",", ";"))


def _view_completions(words: Sequence[str], last: str) -> list[CompletionItem]:
    """Return the completions that click lacks: a view's options with one dash, and some values.

    The values are those of `-order_by`, `-select`, `-output` and `--kind`.
    """
    if not words or words[0] not in {*VIEWS, "advise", "shell"}:
        return []
    option = SPELLINGS.get(words[-1], words[-1]).removeprefix("--").replace("-", "_")
    option = "kinds" if option == "kind" else option
    if option in _VALUES:
        prefix, comma, piece = last.rpartition(",")
        return [CompletionItem(f"{prefix}{comma}{value}") for value in _VALUES[option] if value.startswith(piece)]
    if any(view_option.name == option and view_option.value_type is OUTPUT for view_option in TABLE):
        return [CompletionItem(value) for value in sorted(outputs(words[0])) if value.startswith(last)]
    if last.startswith("-") and not last.startswith("--"):
        return [
            CompletionItem(f"-{view_option.name}") for view_option in TABLE if f"-{view_option.name}".startswith(last)
        ]
    return []
