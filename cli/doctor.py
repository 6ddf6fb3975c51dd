"""`tfprof doctor`: whether a process or a command can be profiled, and why not."""

import shlex
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from ..agent.diagnosis import NO, NOTE, Finding, check_command, check_host, check_process, verdict_of
from ..collector.documents.diagnosis import doctor_document, findings_of
from ..collector.errors import StoreError
from ..collector.query.job_selection import incompleteness, local_jobs
from ..collector.render.wrapping import wrapped
from ..collector.store import catalog
from ..collector.store.opening import open_reader
from ..commands.streams import print_lines
from ..formats.addresses import is_remote
from ..formats.errors import UsageError
from ..formats.requests import DOCTOR
from .command import folder_option, json_option, print_json, width
from .hosts import host_option, one_reply
from .process_ids import complete_pids
from .values import NON_EMPTY

_CONCLUSIONS: Final = {NO: "cannot be profiled as it is", NOTE: "can be profiled, within limits"}
#: Widths of the longest part and verdict, and of a line if the output is not a terminal.
_PART_WIDTH: Final = 10
_VERDICT_WIDTH: Final = 4
_DEFAULT_WIDTH: Final = 100


def _lines(subject: str, findings: Sequence[Finding], columns: int | None) -> Iterator[str]:
    yield f"{subject}: {_CONCLUSIONS.get(verdict_of(findings), 'can be profiled')}"
    for finding in findings:
        head = f"  {finding.part:{_PART_WIDTH}}  {finding.verdict:{_VERDICT_WIDTH}}  "
        yield from wrapped(finding.text, columns or _DEFAULT_WIDTH, " " * len(head), head)


def _store_findings(path: str) -> Iterator[Finding]:
    """Yield a finding if the store cannot be used; `check_host` checks the folders of a host."""
    if is_remote(path):
        return
    try:
        catalog.check(Path(path))
    except StoreError as error:
        if error.slug != "store-missing" or Path(path).is_file():
            yield Finding("store", NO, str(error))


def _job_findings(path: str, pid: int) -> Iterator[Finding]:
    """Yield what cannot be recorded of the job of process ``pid``, if it is in the store."""
    try:
        job = local_jobs(open_reader(path)).get(pid)
    except StoreError:  # `_store_findings` reports it
        return
    for event in incompleteness(job) if job is not None else ():
        yield Finding("job", NOTE, event.line)


@click.command(context_settings={"allow_interspersed_args": False})
@host_option
@json_option
@folder_option
@click.argument("subject", metavar="PID | COMMAND...", nargs=-1, type=NON_EMPTY, shell_complete=complete_pids)
def doctor(subject: Sequence[str], store: str, host: str | None, *, as_json: bool) -> int:
    """Show whether the process PID, or COMMAND, can be profiled, and why not.

    Nothing is changed. For a command, only its Python is started, once and without the command's
    script. The exit status is 1 if the process or command cannot be profiled.
    """
    if not subject:
        raise UsageError("give a PID or a command line (tfprof doctor --help)")
    is_process = len(subject) == 1 and subject[0].isascii() and subject[0].isdigit() and len(subject[0]) < 10
    if host is not None:
        if not is_process:
            raise UsageError("--host needs a PID: a command is checked on its own host")
        host, findings = _on_host(store, host, int(subject[0]))
    else:
        findings = _here(store, subject, is_process=is_process)
    verdict = verdict_of(findings)
    title = f"process {subject[0]}" if is_process else shlex.join(subject)
    if as_json:
        print_json(doctor_document(host or socket.gethostname(), subject, verdict, findings))
    else:
        print_lines(_lines(title if host is None else f"{title} of {host}", findings, width()))
    return int(verdict == NO)


def _here(store: str, subject: Sequence[str], *, is_process: bool) -> list[Finding]:
    if is_process:
        pid = int(subject[0])
        subject_findings = [*check_process(pid), *_job_findings(store, pid)]
    else:
        subject_findings = list(check_command(subject))
    return [*subject_findings, *check_host(store), *_store_findings(store)]


def _on_host(store: str, host: str, pid: int) -> tuple[str, list[Finding]]:
    """Return the name of the host that answers, and the findings there about process ``pid``."""
    reply = one_reply(store, host, DOCTOR, pid)
    return reply.host, [Finding(*finding) for finding in reply.content(findings_of)]
