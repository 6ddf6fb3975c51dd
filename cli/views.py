"""`tfprof scope`, `graph`, `op`, `code`: the views of jobs."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final

import click

from ..collector.errors import NoSuchJobError, UsageError, ViewOptionError
from ..collector.forms import message
from ..collector.query import own_layout
from ..collector.query.engine import QueryEngine
from ..collector.query.explanations import incomplete_reason, notes_of
from ..collector.query.job_selection import Selection
from ..collector.suggestion import suggestion
from ..collector.tfviews.option_values import NONE, STDOUT
from ..collector.tfviews.options import BY, Options, from_texts, warnings
from ..collector.tfviews.parity import Parity
from ..collector.write_output import AnswerText, Terminal, write_output
from ..commands.streams import note, print_lines
from .command import json_option, print_json, width, without_gc
from .selection_options import (
    TfprofCommand,
    jobs_and_ops,
    pop_selection,
    selection_from,
    selection_options,
    top_option,
    view_options,
)

#: Help text of each view.
_HELP: Final = {
    "scope": """Cost of the nodes of JOB, in the tree of their names: layers, towers, optimizers.

    The largest come first. Numbers are per step and include everything below a row.""",
    "graph": """Cost of the nodes of JOB, each below a node that uses its output.

    Numbers are per step and include everything below a row, except *self*, the node's own time. A
    node that several nodes use is below one of them.""",
    "op": """Cost of each op type of JOB, counted like the TF profiler.

    The largest come first. Numbers are per step. `tfprof op JOB MatMul 'Conv*' --by line` shows
    these op types only, each with the lines that created its nodes.""",
    "code": """Cost of each line of Python of JOB, in the tree of calls that created the graph's nodes.

    Numbers are per step and include everything that a line calls. Lines of packages are left out:
    -show_name_regexes '.*' shows them.""",
}
_HELP_ALL: Final = (
    "\n\n    Times are medians over the traced steps, other numbers are means; -step selects one step."
    " Several JOBs are merged by the names of nodes."
    "\n    Lists are separated by commas; regexes match whole names."
    " --exact-tf prints as the TF profiler does."
)


@contextmanager
def _tf_words(parity: Parity) -> Iterator[None]:
    """Give an error about the options the TF profiler's words if ``parity`` asks for its layout."""
    try:
        yield
    except ViewOptionError as error:
        raise error if parity.has_own_layout else UsageError(error.tf_message.rstrip(), slug=error.slug) from None


def _print_json(selection: Selection, view: str, options: Options, ops: Sequence[str]) -> AnswerText:
    """Print the document of a view; return the answer with its notes.

    ``ops``: as for `_of_ops`.
    """
    from ..collector.documents.exact_view import exact_view_document  # noqa: PLC0415  # only --json needs
    from ..collector.documents.view import view_document  # noqa: PLC0415  # these modules

    if selection.parity.has_own_layout:
        answer_rows = own_layout.ask(QueryEngine(), selection, view, options, is_complete=True)
        answer_text = _of_ops(ops, AnswerText(answer_rows.answer, notes=answer_rows.notes))
        print_json(view_document(answer_rows))
        return answer_text
    answer = QueryEngine().ask(selection, view, options, for_message=True)
    notes = notes_of(answer, in_own_layout=False)
    answer_text = _of_ops(ops, AnswerText(answer, notes=notes))
    print_json(exact_view_document(answer, notes, message(answer)))
    return answer_text


def _of_ops(ops: Sequence[str], answer_text: AnswerText) -> AnswerText:
    """Return the answer about ``ops`` without the note that others are hidden.

    NoSuchJobError if a word of ``ops`` is neither a job nor one of its op types.
    """
    if not ops:
        return answer_text
    answer = answer_text.answer
    known = {node.op for node in answer.profile.nodes} if answer.profile else set(ops)
    for word in ops:
        if not any(fnmatchcase(op, word) for op in known):
            hint = suggestion(word, sorted(known)) or ": `tfprof jobs` lists jobs, `tfprof op JOB` op types"
            raise NoSuchJobError(f"no job {word!r}, and no op type of that name{hint}")
    reason = incomplete_reason(answer)
    return answer_text._replace(notes=[text for text in answer_text.notes if text != reason or not answer.has_entries])


def print_answer(answer_text: AnswerText) -> None:
    """Print the lines of an answer, and its warnings and notes on standard error."""
    if answer_text.answer.has_entries:
        print_lines(answer_text.lines, kept="" if answer_text.in_own_layout else "\t")
    for text in (*answer_text.warnings, *answer_text.notes):
        note(text)


@without_gc()
def _show(view: str, options: Options, as_json: bool, ops: Sequence[str], **job_options: Any) -> None:
    if options.top and (as_json or not job_options["parity"].has_own_layout):
        raise UsageError("--top limits the rows of the screen: --json has all rows, and --exact-tf has -max_depth")
    if options.by and (options.output.type != STDOUT or not job_options["parity"].has_own_layout):
        raise UsageError("--by belongs to the screen and to --json: omit -output and --exact-tf")
    if as_json and options.output.type not in {STDOUT, NONE}:
        raise UsageError("--json prints to standard output: omit -output")
    selection = selection_from(**job_options)
    if as_json:
        answer_text = _print_json(selection, view, options, ops)
    else:
        answer_text = write_output(QueryEngine(), selection, view, options, terminal=Terminal(width()))
        answer_text = _of_ops(ops, answer_text)
    for text in warnings(options):
        note(text)
    print_answer(answer_text)


_by_option: Final = click.option(
    "--by",
    type=click.Choice(BY),
    metavar="WHAT",
    help=f"Take each op type apart by {', '.join(BY[:-1])} or {BY[-1]} (of its inputs).",
)


def _command(view: str) -> click.Command:
    @click.command(view, cls=TfprofCommand, help=_HELP[view] + _HELP_ALL)
    @selection_options
    @view_options(view)
    @top_option("largest rows only (all)")
    @json_option
    def command(as_json: bool, compat: str, exact: bool, top: int, **values: Any) -> None:
        job_options, by = pop_selection(values), values.pop("by", None) or ""
        ops: Sequence[str] = ()
        if view == "op":
            job_options["jobs"], ops = jobs_and_ops(job_options["store"], job_options["jobs"])
            regexes = [word.replace("*", ".*") for word in ops]
            values["show_name_regexes"] = ",".join(filter(None, (values["show_name_regexes"], *regexes))) or None
        texts: Mapping[str, str | None] = values
        parity = Parity(compat, exact)
        with _tf_words(parity):
            options = replace(from_texts(texts, parity=parity), top=top, by=by)
            _show(view, options, as_json, ops, parity=parity, **job_options)

    return _by_option(command) if view == "op" else command


scope = _command("scope")
graph = _command("graph")
op = _command("op")
code = _command("code")
