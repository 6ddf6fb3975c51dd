"""What the commands that ask other hosts share (`--host`)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from ..collector.node_client import HostReply, ask
from ..commands.streams import note
from ..formats.requests import Request
from .trace import giver
from .values import NON_EMPTY

F = TypeVar("F", bound=Callable[..., Any])

hosts_option: Callable[[F], F] = click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    type=NON_EMPTY,
    help="On HOST (`*` for any), by its agent, instead of here.",
)
host_option: Callable[[F], F] = click.option(
    "--host", metavar="HOST", type=NON_EMPTY, help="On HOST, by its agent, instead of here."
)
_NO_OPTIONS: Final[Mapping[str, str]] = {}


def replies(
    store: str, hosts: Sequence[str], command: str, pid: int = 0, options: Mapping[str, str] = _NO_OPTIONS
) -> list[HostReply]:
    """Return the replies of ``hosts``, in order of the hosts; TfprofError without a collector."""
    return sorted(ask(store, hosts, Request(command, giver(), pid, options)), key=lambda reply: reply.host)


def note_unanswered(unanswered: Iterable[tuple[str, str, str]]) -> None:
    """Say which hosts did not answer, and why: host, slug and text of each."""
    for host, slug, text in unanswered:
        note(f"{host}: {text} [{slug}]")


def one_reply(store: str, host: str, command: str, pid: int, options: Mapping[str, str] = _NO_OPTIONS) -> HostReply:
    """Return the reply of ``host``, of which there is one."""
    return replies(store, [host], command, pid, options)[0]
