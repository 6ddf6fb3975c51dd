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
    return {int(info.identity.get("pid") or 0): info.name for info in jobs if info.identity.get("host") == host}


def _state(target: Target, names: Mapping[int, str]) -> str:
    if target.state == targets.PROFILED:
        name = names.get(target.process.pid)
        return f"profiled: {name}" if name else "profiled"
    return target.state if target.state == targets.ATTACHABLE else f"no: {target.reason}"


def _document(target: Target, names: Mapping[int, str]) -> dict[str, object]:
    return {
        "pid": target.process.pid,
        "user": target.user,
        "age_s": round(target.age_s, 1),
        "command": target.command,
        "state": target.state,
        "job": names.get(target.process.pid),
        "tensorflow": target.has_tensorflow,
        "slug": target.slug,
        "reason": target.reason,
    }


@click.command()
@json_option
@store_option
def ps(store: str, as_json: bool) -> None:
    """List the processes of this host with TensorFlow: profiled, attachable, or the reason why not.

    Only root can see whether another user's process has TensorFlow. Without root, all large Python
    processes of other users are listed.
    """
    survey, names = targets.survey(), _profiled_names(store)
    if as_json:
        print_json({"processes": [_document(target, names) for target in survey]})
    elif survey:
        rows = [
            [
                str(target.process.pid),
                target.user,
                duration(target.age_s * 1e9),
                _state(target, names),
                shlex.join(target.command),
            ]
            for target in survey
        ]
        print_lines(render(_COLUMNS, rows, width=width()))
    else:
        note("no process here has TensorFlow loaded")
