"""`tfprof scope`, `graph`, `op`, `code`: the views of jobs."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import click

from ..collector.errors import UsageError
from ..collector.forms import message
from ..collector.query import own_layout
from ..collector.query.engine import QueryEngine, Selection
from ..collector.query.explanations import notes_of
from ..collector.tfviews.options import Options, from_texts, warnings
from ..collector.tfviews.output_option import NONE, STDOUT
from ..collector.tfviews.parity import Parity
from ..collector.write_output import AnswerText, Terminal, write_output
from ..commands.streams import note
from .command import json_option, print_json, width
from .print_answer import print_answer
from .selection import TfprofCommand, pop_selection, selection_from, selection_options, view_options
from .values import WHOLE

#: Help text of each view.
_HELP: Final = {
    "scope": """Cost of the nodes of JOB, in the tree of their names: layers, towers, optimizers.

    The largest come first. Numbers are per step and include everything below a row.""",
    "graph": """Cost of the nodes of JOB, each below a node that uses its output.

    Numbers are per step and include everything below a row, except *self*, the node's own time. A
    node that several nodes use is below one of them.""",
    "op": """Cost of each op type of JOB, counted like the TF profiler.

    The largest come first. Numbers are per step.""",
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


def _print_json(selection: Selection, view: str, options: Options) -> AnswerText:
    """Print the document of a view; return the answer with its notes."""
    from ..collector.documents.exact_view import exact_view_document  # noqa: PLC0415  # only --json needs
    from ..collector.documents.view import view_document  # noqa: PLC0415  # these modules

    if selection.parity.has_own_layout:
        answer_rows = own_layout.ask(QueryEngine(), selection, view, options, is_complete=True)
        print_json(view_document(answer_rows))
        return AnswerText(answer_rows.answer, notes=answer_rows.notes)
    answer = QueryEngine().ask(selection, view, options, for_message=True)
    notes = notes_of(answer, in_own_layout=False)
    print_json(exact_view_document(answer, notes, message(answer)))
    return AnswerText(answer, notes=notes)


@contextmanager
def _without_gc() -> Iterator[None]:
    """Disable the garbage collector for a command.

    The command ends soon, and collections take a quarter of the time of a large view.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_without_gc()
def _show(view: str, options: Options, as_json: bool, **job_options: Any) -> None:
    if options.top and (as_json or not job_options["parity"].has_own_layout):
        raise UsageError("--top limits the rows of the screen: --json has all rows, and --exact-tf has -max_depth")
    if as_json and options.output.type not in {STDOUT, NONE}:
        raise UsageError("--json prints to standard output: omit -output")
    selection = selection_from(**job_options)
    answer_text = (
        _print_json(selection, view, options)
        if as_json
        else write_output(QueryEngine(), selection, view, options, terminal=Terminal(width()))
    )
    for text in warnings(options):
        note(text)
    print_answer(answer_text)


def _command(view: str) -> click.Command:
    @click.command(view, cls=TfprofCommand, help=_HELP[view] + _HELP_ALL)
    @selection_options
    @view_options(view)
    @click.option("--top", metavar="N", type=WHOLE, default=0, help="Show the N largest rows only (all).")
    @json_option
    def command(as_json: bool, compat: str, exact: bool, top: int, **values: Any) -> None:
        job_options = pop_selection(values)
        texts: Mapping[str, str | None] = values
        parity = Parity(compat, exact)
        options = replace(from_texts(texts, parity=parity), top=top)
        _show(view, options, as_json, parity=parity, **job_options)

    return command


scope = _command("scope")
graph = _command("graph")
op = _command("op")
code = _command("code")
