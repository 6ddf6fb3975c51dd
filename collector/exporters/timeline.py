"""Timelines of answers: flame graphs of trees, and the recorded course of each step."""

from collections.abc import Iterator
from dataclasses import replace

from ..errors import RefusedError
from ..export.timeline import LONG, WARNING, file_name, graph_timeline, scope_timeline, written
from ..query.engine import Answer, Desk
from ..query.executions import by_step, persistent_bytes, step_traces
from ..tfviews.output import File


def files(desk: Desk, answer: Answer) -> Iterator[File]:
    """Yield the timeline of a scope or code view, or one for each step that a graph view covers.

    Raises RefusedError for a graph view of several jobs or of one device: their steps share no
    clock.
    """
    options = answer.options
    if answer.view.name != "graph":
        yield _timeline(options.output.outfile, options.step, scope_timeline(answer.tree), [])
        return
    yield from _of_steps(desk, answer)


def _of_steps(desk: Desk, answer: Answer) -> Iterator[File]:
    about, options = answer.about, answer.options
    if len(about.jobs) != 1 or about.device is not None:
        raise RefusedError("a timeline of the graph view is of one job, with all its devices")
    job = about.jobs[0]
    apart = not about.parity.exact
    known = step_traces(job, about.kinds, apart=apart)
    first, last = (options.step, options.step) if options.step >= 0 else about.steps or (0, max(known, default=0))
    steps = [step for step in known if first <= step <= last]
    persistent = persistent_bytes(job, about.kinds, apart=apart)
    for step, entries in by_step(job, steps, about.kinds, apart=apart):
        found = answer if options.step >= 0 else desk.ask(about, "graph", replace(options, step=step))
        drawn = graph_timeline(found.tree, entries, persistent, about.parity)
        yield _timeline(options.output.outfile, step, drawn.data, drawn.says())


def _timeline(outfile: str, step: int, data: bytes, said: list[str]) -> File:
    path = file_name(outfile, step)
    return File(path, data, [*said, written(path)], [WARNING] if len(data) > LONG else [])
