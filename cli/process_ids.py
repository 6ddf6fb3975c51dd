"""Shell completion of process ids: those of processes with TensorFlow."""

import click
from click.shell_completion import CompletionItem

from ..agent.attach import targets


def complete_pids(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids that begin with ``incomplete``, with the name and the state of the process."""
    return [
        CompletionItem(str(target.process.pid), help=f"{targets.program(target.command)} ({target.state})")
        for target in targets.survey()
        if str(target.process.pid).startswith(incomplete) and target.command
    ]
