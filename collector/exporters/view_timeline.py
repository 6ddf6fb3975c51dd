"""The exporter of `-output timeline`.

It draws a scope or code view as a flame graph. For a graph view, it draws the executions of each
step.
"""

from collections.abc import Iterator
from dataclasses import replace

from ..errors import RefusedOutputError
from ..export.timeline import (
    LARGE_FILE_BYTES,
    LARGE_FILE_WARNING,
    file_message,
    file_name,
    graph_timeline,
    scope_timeline,
)
from ..query.engine import Answer, QueryEngine
from ..query.step_entries import entries_by_step, persistent_bytes, step_traces
from ..tfviews.option_values import File


def files(engine: QueryEngine, answer: Answer) -> Iterator[File]:
    """Yield the timeline of a scope or code view, or one for each step of a graph view.

    The steps are those that the graph view covers. RefusedOutputError for a graph view of several
    jobs or of one device.
    """
    options = answer.options
    if answer.view.name != "graph":
        yield _timeline(options.output.outfile, options.step, scope_timeline(answer.tree, answer.time_unit), [])
        return
    yield from _step_timelines(engine, answer)


def _step_timelines(engine: QueryEngine, answer: Answer) -> Iterator[File]:
    selection, options = answer.selection, answer.options
    if len(selection.jobs) != 1 or selection.device is not None or selection.since_ns:
        raise RefusedOutputError("a timeline of the graph view shows one job, with all its devices and times")
    job = selection.jobs[0]
    separate_functions = selection.parity.separates_kinds
    traced_steps = step_traces(job, selection.kinds, separate_functions=separate_functions)
    step_range = selection.steps or (0, max(traced_steps, default=0))
    first, last = (options.step, options.step) if options.step >= 0 else step_range
    steps = [step for step in traced_steps if first <= step <= last]
    persistent = persistent_bytes(job, selection.kinds, separate_functions=separate_functions)
    for step, entries in entries_by_step(job, steps, selection.kinds, separate_functions=separate_functions):
        step_answer = answer if options.step >= 0 else engine.ask(selection, "graph", replace(options, step=step))
        timeline = graph_timeline(step_answer.tree, entries, persistent, selection.parity)
        hidden = [_hidden_text(step, timeline.hidden)] if timeline.hidden and selection.parity.has_own_layout else []
        file = _timeline(options.output.outfile, step, timeline.data, timeline.messages())
        yield file._replace(warnings=[*file.warnings, *hidden])


def _hidden_text(step: int, number: int) -> str:
    verb = "execution is" if number == 1 else "executions are"
    return (
        f"{number:,} {verb} not drawn in the timeline of step {step}: of those that start in the same µs on a device,"
        " the TF profiler's form has one"
    )


def _timeline(outfile: str, step: int, data: bytes, messages: list[str]) -> File:
    path = file_name(outfile, step)
    return File(
        path, data, [*messages, *file_message(path)], [LARGE_FILE_WARNING] if len(data) > LARGE_FILE_BYTES else []
    )
