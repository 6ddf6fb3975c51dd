"""`tfprof status`: the state of agent and collector."""

import errno
import stat
from pathlib import Path
from typing import Any, Final

import click

from ..collector.errors import StoreError
from ..collector.render import status_text
from ..collector.store import catalog
from ..commands.daemons import read_status, running_pid
from ..formats import runtime_dir
from .command import json_option, print_json, print_lines, store_option, width

#: Names of the daemons, and of their pid and status files.
DAEMONS: Final = ("agent", "collector")


def checked_instance_dir(store: str) -> str:
    """Return the instance folder of ``store``; neither needs to exist yet.

    StoreError if no daemon runs and ``store`` cannot be a store.
    """
    instance_dir = runtime_dir.instance_dir(store)
    if not any(running_pid(instance_dir, name) for name in DAEMONS):
        try:
            catalog.check(Path(store))
        except StoreError as error:
            if error.slug != "store-missing" or not _may_become_store(store):
                raise
    return instance_dir


def _may_become_store(store: str) -> bool:
    try:
        return stat.S_ISDIR(Path(store).stat().st_mode)
    except OSError as error:
        return error.errno == errno.ENOENT


def statuses(store: str) -> dict[str, dict[str, Any]]:
    """Return the last status of each daemon of ``store``; `alive`: whether it runs."""
    instance_dir = checked_instance_dir(store)
    return {name: read_status(instance_dir, name) or {"alive": False} for name in DAEMONS}


@click.command()
@json_option
@store_option
def status(store: str, as_json: bool) -> None:
    """Print the state of the agent and the collector of a store.

    It includes their start, delay, lost and refused data, and memory.
    """
    daemons = statuses(store)
    # A collector that is not running would use the decoder installed here.
    if "decoder" not in daemons["collector"]:
        from ..collector.decoders.decode import decoder  # noqa: PLC0415  # slow to import

        daemons["collector"]["decoder"] = decoder("auto").name
    if as_json:
        from ..collector.query.documents import status_document  # noqa: PLC0415  # only --json needs it

        print_json(status_document(store, runtime_dir.instance_dir(store), daemons))
    else:
        print_lines(status_text.lines(store, daemons, width()))
