"""Timelines of answers: of trees as they are, of a graph for each step as it ran."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from .errors import RefusedError
from .export.timeline import LONG, WARNING, file_name, graph_timeline, scope_timeline, written
from .query.engine import Answer, Desk
from .query.executions import by_step, persistent_bytes, step_traces


class Timeline(NamedTuple):
    """A file, and what is said of it on standard output and standard error."""

    path: str
    data: bytes
    said: list[str]
    notes: list[str]


def timelines(desk: Desk, answer: Answer) -> Iterator[Timeline]:
    """Yield the timeline of a scope or code view, or of a graph view for its step, or for each of the traced steps.

    Raises RefusedError for the graph view of several jobs or of one device: their steps have no time in common.
    """
    options = answer.options
    if answer.view.name != "graph":
        yield _timeline(options.output.outfile, options.step, scope_timeline(answer.tree), [])
        return
    yield from _of_steps(desk, answer)


def _of_steps(desk: Desk, answer: Answer) -> Iterator[Timeline]:
    about, options = answer.about, answer.options
    if len(about.jobs) != 1 or about.device is not None:
        raise RefusedError("a timeline of the graph view is of one job, with all its devices")
    job = about.jobs[0]
    known = step_traces(job, about.kinds)
    first, last = (options.step, options.step) if options.step >= 0 else about.steps or (0, max(known, default=0))
    steps = [step for step in known if first <= step <= last]
    persistent = persistent_bytes(job, about.kinds)
    for step, entries in by_step(job, steps, about.kinds):
        found = answer if options.step >= 0 else desk.ask(about, "graph", replace(options, step=step))
        drawn = graph_timeline(found.tree, entries, persistent, about.parity)
        yield _timeline(options.output.outfile, step, drawn.data, drawn.says())


def _timeline(outfile: str, step: int, data: bytes, said: list[str]) -> Timeline:
    path = file_name(outfile, step)
    return Timeline(path, data, [*said, written(path)], [WARNING] if len(data) > LONG else [])
