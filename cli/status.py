"""`tfprof status`: the state of agent and collector."""

import click

from ..collector.daemon_status import daemon_status
from ..collector.render import status_text
from ..commands.streams import print_lines
from .command import folder_option, json_option, print_json, width


@click.command()
@json_option
@folder_option
def status(store: str, as_json: bool) -> int:
    """Print the state of the agent and the collector of a store.

    It includes their start, delay, lost and refused data, and memory. The exit status is 1 if one
    of them could not start, or if data is not stored, sent or copied now.
    """
    answer = daemon_status(store)
    if as_json:
        from ..collector.documents.daemons import status_document  # noqa: PLC0415  # only --json needs it

        print_json(status_document(answer))
    else:
        print_lines(status_text.lines(store, {"agent": answer.agent, "collector": answer.collector}, width()))
    return int(answer.is_failing)
