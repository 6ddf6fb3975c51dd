"""One cell of the matrix: a job runs bare (without tfprof) and armed (under `tfprof-run`).

Both runs take place at the same time. They must end alike, and tfprof must record the steps and
spans that the job itself counts.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil
from fakes.log_text import without_numbers
from fakes.round_trip import differences
from tfprof.formats import layout

from .instance import Instance
from .rows import JOBS, LIMITS, Limit, Row
from .versions import Version

RUN: Final = Path(sys.executable).parent / "tfprof-run"
TIMEOUT_S: Final = 120
_RUN_KINDS: Final = [layout.SPAN_NAMES[kind] for kind in layout.RUN_KINDS]
_NO_LIMIT: Final = Limit(frozenset(), False, "")
#: Beginning of the line with which a job reports its steps and spans.
_REPORT: Final = '{"spans"'
#: Variable that marks the processes of a job.
_CELL_VARIABLE: Final = "TFPROF_MATRIX_CELL"


class ScriptResult(NamedTuple):
    """The end of a command; ``status`` is None after a timeout.

    ``leftovers`` are the pids of processes that the command left behind.
    """

    status: int | None
    out: str
    errors: str
    leftovers: list[str]


class Outcome(NamedTuple):
    """The problem of each part of a cell, '' for none.

    ``profile``: differences between the job and the copy that is imported from its exported
    profile.
    """

    status: str
    steps: str
    ops: str
    spans: str
    profile: str = ""

    def problems(self) -> list[str]:
        """Return all problems, a line each."""
        return [f"{part}: {text}" for part, text in self._asdict().items() if text]


def run(row: Row, version: Version, instance: Instance) -> Outcome:
    """Run a cell."""
    name = f"{row.name}-{version.name}"
    command = row.command(version)
    armed_job = _Job([str(RUN), "--no-report", "--name", name, "--", *command], instance.environment)
    bare_job = _ForkedJob(row, version, instance) if row.is_forkable else _Job(command, instance.environment)
    bare, armed = bare_job.end(), armed_job.end()
    recorded_jobs = instance.jobs(name)
    limit = LIMITS.get(row.limit_name(version), _NO_LIMIT)
    reports = [json.loads(line) for line in armed.out.splitlines() if line.startswith(_REPORT)]
    steps = _sums_by_kind(report["steps"] for report in reports)
    spans = _sums_by_kind(report["spans"] for report in reports)
    entries = [entry for job in recorded_jobs for entry in instance.ask("spans", job["uid"])["spans"]]
    return Outcome(
        "; ".join(_status_problems(bare, armed)),
        "; ".join(_step_problems(steps, _counted_steps(instance, recorded_jobs), limit, recorded_jobs)),
        "; ".join(
            [
                *_op_problems(row.op, instance, recorded_jobs, limit),
                *_device_problems(row, instance, recorded_jobs),
                *_false_alarms(instance, recorded_jobs),
            ]
        ),
        "; ".join(_span_problems({**steps, **spans}, entries, limit)),
        "; ".join(text for job in recorded_jobs if job["traced"] for text in differences(instance.store, job["uid"])),
    )


class _Job:
    """A process; an environment variable marks it and its descendants."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._mark = uuid.uuid4().hex
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command,
            env={**environment, _CELL_VARIABLE: self._mark},
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )

    def end(self) -> ScriptResult:
        """Wait until the process ends, then kill the processes that it left behind."""
        status: int | None = None
        try:
            out, errors = self._process.communicate(timeout=TIMEOUT_S)
            status = self._process.returncode
        except subprocess.TimeoutExpired:
            self._process.terminate()
            out = errors = ""
        leftovers = _killed_leftovers(self._mark)
        self._process.communicate()
        return ScriptResult(status, out, errors, leftovers)


class _ForkedJob:
    """A bare job in a process that is forked after the import of TensorFlow.

    An environment variable marks the programs that it starts.
    """

    def __init__(self, row: Row, version: Version, instance: Instance) -> None:
        self._mark = uuid.uuid4().hex
        self._server = instance.fork_server(version.python)
        self._script = self._server.start(
            JOBS / row.script, *row.arguments(version), folder=Path.cwd(), **{_CELL_VARIABLE: self._mark}
        )

    def end(self) -> ScriptResult:
        """Wait until the process ends; it is killed after a timeout."""
        timer = threading.Timer(TIMEOUT_S, os.kill, (self._script.pid, signal.SIGKILL))
        timer.start()
        result = self._script.finish()
        timer.cancel()
        out = "".join(f"{line}\n" for line in result.output)
        errors = self._server.import_errors + result.errors
        return ScriptResult(result.status, out, errors, _killed_leftovers(self._mark))


def _killed_leftovers(mark: str) -> list[str]:
    """Kill the processes that have ``mark`` in their environment; return their pids."""
    pids = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(_CELL_VARIABLE) == mark and process.status() != psutil.STATUS_ZOMBIE:
                pids.append(f"{process.pid}")
                process.kill()
    return pids


def _sums_by_kind(reports: Any) -> dict[str, int | None]:
    """Return the sum of several reports by kind.

    None stands for at least one; a sum with None is None.
    """
    sums: dict[str, int | None] = {}
    for report in reports:
        for kind, number in report.items():
            before = sums.get(kind, 0)
            sums[kind] = None if number is None or before is None else before + number
    return sums


def _status_problems(bare: ScriptResult, armed: ScriptResult) -> Iterator[str]:
    """Yield an error of the bare job, differences of the armed one, and processes left behind."""
    if bare.status != 0:
        yield f"the bare job ended with {bare.status}: {bare.errors[-600:]}"
    if armed.status != bare.status:
        yield f"{armed.status} instead of {bare.status}: {armed.errors[-600:]}"
    armed_lines, bare_lines = (
        [line for line in job.out.splitlines() if not line.startswith(_REPORT)] for job in (armed, bare)
    )
    if armed_lines != bare_lines:
        yield f"printed {armed_lines} instead of {bare_lines}"
    armed_errors, bare_errors = (Counter(without_numbers(job.errors).splitlines()) for job in (armed, bare))
    if armed_errors != bare_errors:
        yield f"standard error has {list(armed_errors - bare_errors)} more, {list(bare_errors - armed_errors)} less"
    if armed.leftovers or bare.leftovers:
        yield f"left processes behind: armed {armed.leftovers}, bare {bare.leftovers}"


def _counted_steps(instance: Instance, recorded_jobs: list[Any]) -> Counter[str]:
    """Return how many steps of each kind tfprof counted."""
    counts: Counter[str] = Counter()
    for job in recorded_jobs:
        for group in instance.ask("steps", job["uid"])["groups"]:
            counts[group["kind"]] += group["count"]
    return counts


def _differences(expected: dict[str, int | None], actual: Counter[str], limit: Limit) -> Iterator[str]:
    """Yield the kinds whose numbers differ; `runs` counts session runs of all kinds."""
    if "runs" in expected:
        runs = sum(actual[kind] for kind in _RUN_KINDS)
        actual = Counter(
            {kind: number for kind, number in actual.items() if kind in expected or kind not in _RUN_KINDS}
        )
        actual["runs"] = runs
    for kind in sorted({*expected, *actual}):
        number = 0 if kind in limit.kinds else expected.get(kind, 0)
        if actual[kind] != number and not (number is None and actual[kind]):
            yield f"{kind}: {actual[kind]} recorded, {'at least 1' if number is None else number} expected"


def _step_problems(
    expected: dict[str, int | None], actual: Counter[str], limit: Limit, recorded_jobs: list[Any]
) -> Iterator[str]:
    """Yield the differences between the steps that tfprof counted and those that ran."""
    yield from _differences(expected, actual, limit)
    for job in recorded_jobs:
        if job["lost"] or job["state"] not in {"exited", "ended"}:
            yield f"{job['lost']} lost, {job['state']} {job['status']}"


def _span_problems(expected: dict[str, int | None], entries: list[Any], limit: Limit) -> Iterator[str]:
    """Yield the differences between the spans that tfprof recorded and those that ran."""
    actual: Counter[str] = Counter()
    for entry in entries:
        actual[entry["kind"]] += entry["count"]
        if entry["running"]:
            yield f"{entry['label']} has not ended"
    yield from _differences(expected, actual, limit)


def _op_problems(op: str, instance: Instance, recorded_jobs: list[Any], limit: Limit) -> Iterator[str]:
    """Yield the errors in the ops of traced steps."""
    traced, viewed, runs = 0, 0, 0.0
    for job in recorded_jobs:
        view = instance.ask("op", job["uid"], "--kind", "all")
        traced += job["traced"]
        viewed += view["traces"] if view else 0
        runs += _executions(view, op) if view else 0
    if limit.lacks_ops:
        if runs:
            yield f"{runs:g} executions a step of {op} where there can be none"
        return
    if not runs:
        events = {event["slug"] for job in recorded_jobs for event in instance.ask("steps", job["uid"])["events"]}
        yield f"no {op} in {traced} traced steps {sorted(events) or ''}"
    if viewed != traced:
        yield f"the view has {viewed} of {traced} traced steps"


def _false_alarms(instance: Instance, recorded_jobs: list[Any]) -> Iterator[str]:
    """Yield the events that say that a part of a job cannot be recorded."""
    for job in recorded_jobs:
        for event in instance.ask("steps", job["uid"])["events"]:
            if event["slug"] in {"patch-missing", "no-ops"}:
                yield f"{event['text']} [{event['slug']}]"


def _device_problems(row: Row, instance: Instance, recorded_jobs: list[Any]) -> Iterator[str]:
    """Yield an error if the row's second device has no ops."""
    if row.device:
        words = ("--device", row.device, "--kind", "all")
        views = [instance.ask("op", job["uid"], *words) for job in recorded_jobs]
        if not any(view and _executions(view, row.op) for view in views):
            yield f"no {row.op} on {row.device}"


def _executions(view: Any, op: str) -> float:
    """Return how often ops of type ``op`` ran in a step."""
    return sum(float(row["runs"]) for row in view["rows"] if row["name"] == op)


def missing_environment(version: Version) -> str:
    """Return a message if the environment of a version is missing, '' if it exists."""
    return "" if os.access(version.python, os.X_OK) else f"no {version.python.parents[1]}: run `make matrix-venvs`"
