"""`tfprof ps`: the processes of this host, or of others, that have TensorFlow loaded."""

import shlex
import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import click

from ..agent.attach import targets
from ..agent.attach.targets import Target
from ..collector.documents.processes import SurveyedProcess, processes_of, ps_document
from ..collector.errors import StoreError
from ..collector.numbers import duration
from ..collector.query.job_selection import incompleteness, local_jobs
from ..collector.render.table import Column, render
from ..collector.store.opening import open_reader
from ..collector.store.protocols import JobReader
from ..commands.streams import note, print_lines
from ..formats.errors import TfprofError
from ..formats.requests import PS
from .command import folder_option, json_option, print_json, width
from .hosts import hosts_option, note_unanswered, replies

_HOST: Final = Column("HOST", min_width=4)
_COLUMNS: Final = (
    Column("PID", right=True),
    Column("USER", min_width=4, drop_priority=2),
    Column("AGE", right=True, drop_priority=1),
    Column("STATE", min_width=10, preferred_width=30),
    Column("COMMAND", min_width=12, preferred_width=24),
)


def _jobs(store: str, host: str = "") -> Mapping[int, JobReader]:
    """Return the running jobs in ``store`` that run on ``host``, by default this one, by pid.

    A host whose jobs are stored on another one has none.
    """
    try:
        return local_jobs(open_reader(store), host)
    except StoreError as error:
        if error.slug not in ("store-missing", "store-remote"):
            raise
        return {}


def _process(target: Target, job: JobReader | None) -> SurveyedProcess:
    return SurveyedProcess(
        host=socket.gethostname(),
        pid=target.process.pid,
        user=target.user,
        age_s=target.age_s,
        command=target.command,
        state=target.state,
        has_tensorflow=target.has_tensorflow,
        slug=target.slug,
        reason=target.reason,
        **_of_job(job),
    )


def _of_job(job: JobReader | None) -> dict[str, Any]:
    return {
        "job": None if job is None else job.info.name,
        "warnings": [] if job is None else incompleteness(job),
    }


def _on_hosts(store: str, hosts: Sequence[str]) -> tuple[list[SurveyedProcess], list[tuple[str, str, str]]]:
    """Return the processes on ``hosts``, and host, slug and text of those that did not answer."""
    processes: list[SurveyedProcess] = []
    unanswered = []
    for reply in replies(store, hosts, PS):
        try:
            found = reply.content(partial(processes_of, host=reply.host))
        except TfprofError as error:
            unanswered.append((reply.host, error.slug, str(error.args[0])))
            continue
        jobs = _jobs(store, reply.host)
        processes += [process._replace(**_of_job(jobs.get(process.pid))) for process in found]
    return processes, unanswered


def _here(store: str) -> list[SurveyedProcess]:
    survey, jobs = targets.survey(), _jobs(store)
    return [_process(target, jobs.get(target.process.pid)) for target in survey]


def _rows(processes: Sequence[SurveyedProcess], *, with_host: bool) -> Iterator[list[str]]:
    for process in processes:
        yield [
            *([process.host] if with_host else []),
            str(process.pid),
            process.user,
            duration(process.age_s * 1e9),
            _state(process),
            shlex.join(process.command),
        ]


def _state(process: SurveyedProcess) -> str:
    if process.state == targets.PROFILED:
        slugs = dict.fromkeys(f" [{event.slug}]" for event in process.warnings)
        return "".join([f"profiled: {process.job}" if process.job else "profiled", *slugs])
    return process.state if process.state == targets.ATTACHABLE else f"no: {process.reason}"


@click.command()
@hosts_option
@json_option
@folder_option
def ps(store: str, hosts: Sequence[str], *, as_json: bool) -> int:
    """List the processes of this host with TensorFlow: profiled, attachable, or the reason why not.

    Only root can see whether another user's process has TensorFlow. Without root, all large Python
    processes of other users are listed.
    """
    processes, unanswered = _on_hosts(store, hosts) if hosts else (_here(store), [])
    if as_json:
        print_json(ps_document(processes, unanswered))
        return int(bool(unanswered))
    if processes:
        columns = (_HOST, *_COLUMNS) if hosts else _COLUMNS
        print_lines(render(columns, list(_rows(processes, with_host=bool(hosts))), width=width()))
    elif not unanswered:
        note("no process there has TensorFlow loaded" if hosts else "no process here has TensorFlow loaded")
    note_unanswered(unanswered)
    return int(bool(unanswered))
