"""`tfprof ps`: the processes of this host that have TensorFlow loaded."""

import shlex
from collections.abc import Mapping
from typing import Final

import click

from ..agent.attach import targets
from ..agent.attach.targets import Target
from ..collector.documents.processes import SurveyedProcess, ps_document
from ..collector.errors import StoreError
from ..collector.numbers import duration
from ..collector.query.local_jobs import incompleteness, local_jobs
from ..collector.render.table import Column, render
from ..collector.store.opening import open_reader
from ..collector.store.protocols import JobReader
from ..commands.streams import note, print_lines
from .command import folder_option, json_option, print_json, width

_COLUMNS: Final = (
    Column("PID", right=True),
    Column("USER", min_width=4, drop_priority=2),
    Column("AGE", right=True, drop_priority=1),
    Column("STATE", min_width=10, preferred_width=30),
    Column("COMMAND", min_width=12, preferred_width=24),
)


def _jobs(store: str) -> Mapping[int, JobReader]:
    """Return the running jobs in ``store`` that run on this host, by pid."""
    try:
        return local_jobs(open_reader(store))
    except StoreError as error:
        if error.slug != "store-missing":
            raise
        return {}


def _process(target: Target, job: JobReader | None) -> SurveyedProcess:
    return SurveyedProcess(
        pid=target.process.pid,
        user=target.user,
        age_s=target.age_s,
        command=target.command,
        state=target.state,
        has_tensorflow=target.has_tensorflow,
        slug=target.slug,
        reason=target.reason,
        job=None if job is None else job.info.name,
        warnings=[] if job is None else incompleteness(job),
    )


def _state(process: SurveyedProcess) -> str:
    if process.state == targets.PROFILED:
        slugs = dict.fromkeys(f" [{event.slug}]" for event in process.warnings)
        return "".join([f"profiled: {process.job}" if process.job else "profiled", *slugs])
    return process.state if process.state == targets.ATTACHABLE else f"no: {process.reason}"


@click.command()
@json_option
@folder_option
def ps(store: str, as_json: bool) -> None:
    """List the processes of this host with TensorFlow: profiled, attachable, or the reason why not.

    Only root can see whether another user's process has TensorFlow. Without root, all large Python
    processes of other users are listed.
    """
    survey, jobs = targets.survey(), _jobs(store)
    processes = [_process(target, jobs.get(target.process.pid)) for target in survey]
    if as_json:
        print_json(ps_document(processes))
    elif processes:
        rows = [
            [
                str(process.pid),
                process.user,
                duration(process.age_s * 1e9),
                _state(process),
                shlex.join(process.command),
            ]
            for process in processes
        ]
        print_lines(render(_COLUMNS, rows, width=width()))
    else:
        note("no process here has TensorFlow loaded")
