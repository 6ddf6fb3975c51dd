"""`tfprof ps`: the processes of this host that have TensorFlow loaded."""

import os
import shlex
from collections.abc import Mapping
from typing import Final

import click

from ..agent.attach import targets
from ..agent.attach.targets import Target
from ..collector.errors import StoreError
from ..collector.numbers import duration
from ..collector.render.table import Column, render
from ..collector.store.catalog import RUNNING
from ..collector.store.reader import open_reader
from ..commands.streams import note
from .command import json_option, print_json, print_lines, store_option, width

_COLUMNS: Final = (
    Column("PID", right=True),
    Column("USER", min_width=4, drop_priority=2),
    Column("AGE", right=True, drop_priority=1),
    Column("STATE", min_width=10, preferred_width=30),
    Column("COMMAND", min_width=12, preferred_width=24),
)


def _profiled_names(store: str) -> Mapping[int, str]:
    """Return the names of the running jobs in ``store`` that run on this host, by pid."""
    host = os.uname().nodename
    try:
        jobs = [job.info for job in open_reader(store).jobs() if job.info.state == RUNNING]
    except StoreError as error:
        if error.slug != "store-missing":
            raise
        return {}
    return {int(one.identity.get("pid") or 0): one.name for one in jobs if one.identity.get("host") == host}


def _state(one: Target, names: Mapping[int, str]) -> str:
    if one.state == targets.PROFILED:
        name = names.get(one.process.pid)
        return f"profiled: {name}" if name else "profiled"
    return one.state if one.state == targets.ATTACHABLE else f"no: {one.reason}"


def _document(one: Target, names: Mapping[int, str]) -> dict[str, object]:
    return {
        "pid": one.process.pid,
        "user": one.user,
        "age_s": round(one.age_s, 1),
        "command": one.command,
        "state": one.state,
        "job": names.get(one.process.pid),
        "tensorflow": one.has_tensorflow,
        "slug": one.slug,
        "reason": one.reason,
    }


@click.command()
@json_option
@store_option
def ps(store: str, as_json: bool) -> None:
    """List the processes of this host with TensorFlow: profiled, attachable, or the reason why not.

    Only root can see whether another user's process has TensorFlow. Without root, all large Python
    processes of other users are listed.
    """
    found, names = targets.survey(), _profiled_names(store)
    if as_json:
        print_json({"processes": [_document(one, names) for one in found]})
    elif found:
        rows = [
            [
                str(one.process.pid),
                one.user,
                duration(one.age_s * 1e9),
                _state(one, names),
                shlex.join(one.command),
            ]
            for one in found
        ]
        print_lines(render(_COLUMNS, rows, width=width()))
    else:
        note("no process here has TensorFlow loaded")
