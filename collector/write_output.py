"""Writes the file that `-output` names, and returns the lines to print."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..formats.exports import VIEW_EXPORTERS
from .errors import RefusedOutputError
from .forms import lines
from .loader import load
from .query.engine import Answer, QueryEngine
from .query.explanations import notes_of
from .query.job_selection import Selection
from .tfviews.option_values import NONE, STDOUT
from .tfviews.options import Options


class AnswerText(NamedTuple):
    """An answer, with its lines for standard output, and warnings and notes for standard error.

    ``notes``: why the answer is empty or incomplete, and hints. ``in_own_layout``: the lines are in
    tfprof's own layout, not in the TF profiler's.
    """

    answer: Answer
    lines: Iterable[str] = ()
    warnings: Iterable[str] = ()
    notes: Sequence[str] = ()
    in_own_layout: bool = False


def _check_output_type(view: str, options: Options) -> None:
    """Raise RefusedOutputError if ``view`` does not support the type in ``-output``."""
    exporter = VIEW_EXPORTERS.get(options.output.type)
    if exporter is not None and view not in exporter.views:
        views = ", ".join(sorted(exporter.views))
        raise RefusedOutputError(f"-output {options.output.type} is for {views}, not for {view}", exporter.refusal)


class Terminal(NamedTuple):
    """A terminal or pipe for the output; its width in columns, None for no limit."""

    width: int | None


def write_output(
    engine: QueryEngine,
    selection: Selection,
    view: str,
    options: Options,
    *,
    for_message: bool = False,
    terminal: Terminal | None = None,
) -> AnswerText:
    """Query ``view``, write the file that ``options.output`` names, and return the answer.

    The answer comes with the lines to print. With ``terminal``, the lines are in tfprof's own
    layout if ``parity.has_own_layout``. Otherwise they are in the layout of the TF profiler.
    ``for_message``: read all facts of the view's protobuf message, not only those in its text.

    No file is written if there is nothing to show: no step was traced, or the code view has no
    stack. Raises RefusedOutputError if the type cannot show the view or the selection, TfprofError
    ``io`` if a file cannot be written, NoSuchStepError, and UsageError ``no-such-kind``,
    ``no-such-device``.
    """
    if terminal is not None and options.output.type == STDOUT and selection.parity.has_own_layout:
        answer_rows = load("tfprof.collector.query.own_layout:ask")(engine, selection, view, options)
        if not answer_rows.answer.has_data:
            return AnswerText(answer_rows.answer, notes=answer_rows.notes)
        text = load("tfprof.collector.render.view_text:lines")(answer_rows, terminal.width)
        return AnswerText(answer_rows.answer, text, notes=answer_rows.notes, in_own_layout=True)
    answer = engine.ask(selection, view, options, for_message=for_message)  # first, as in TensorFlow
    notes = notes_of(answer, in_own_layout=False)
    _check_output_type(view, options)
    if not answer.has_data or options.output.type == NONE:
        return AnswerText(answer, notes=notes)
    if options.output.type == STDOUT:
        return AnswerText(answer, lines(answer), notes=notes)
    return _write_files(engine, answer, notes)


def _write_files(engine: QueryEngine, answer: Answer, notes: Sequence[str]) -> AnswerText:
    """Write the files of the exporter that ``-output`` names."""
    from .export.files import write  # noqa: PLC0415  # few answers go to a file
    from .exporters.table import files  # noqa: PLC0415

    printed_lines: list[str] = []
    warnings: list[str] = []
    for file in files(engine, answer):
        write(file.path, file.data)
        printed_lines += file.lines
        warnings += file.warnings
    return AnswerText(answer, printed_lines, warnings, notes)
