"""`tfprof scope`, `graph`, `op`, `code`: the views of jobs."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import click

from ..collector.errors import UsageError
from ..collector.forms import message
from ..collector.query.engine import Answer, QueryEngine
from ..collector.tfviews.options import Options, from_texts, warnings
from ..collector.tfviews.output_option import NONE, STDOUT
from ..collector.tfviews.parity import Parity
from ..collector.write_output import AnswerText, Terminal, check_output_type, write_output
from ..commands.streams import note
from .command import json_option, print_pieces, width
from .print_answer import print_answer
from .selection import TfprofCommand, pop_selection, selection_from, selection_options, view_options

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
    "\n\n    Numbers are means over the traced steps, or the numbers of one step (-step)."
    " Several JOBs are merged by the names of nodes."
    "\n    Lists are separated by commas; regexes match whole names."
    " --exact-tf prints as the TF profiler does."
)


def _json(answer: Answer) -> Iterator[str]:
    """Yield the JSON document of an answer: the query, and the message of the view."""
    import json  # noqa: PLC0415  # only --json needs these modules

    from ..collector.query.documents import view_document  # noqa: PLC0415
    from ..collector.render.json_text import chunks  # noqa: PLC0415

    yield json.dumps(view_document(answer), indent=1)[:-2] + ',\n "profile":'
    yield from chunks(message(answer))
    yield "\n}\n"


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
    if as_json and options.output.type not in {STDOUT, NONE}:
        raise UsageError("--json prints to standard output: omit -output")
    check_output_type(view, options)
    engine, selection = QueryEngine(), selection_from(**job_options)
    if as_json:
        answer = engine.ask(selection, view, options, for_message=True)
        print_pieces(_json(answer))
        answer_text = AnswerText(answer)
    else:
        answer_text = write_output(engine, selection, view, options, terminal=Terminal(width()))
    for text in warnings(options):
        note(text)
    print_answer(answer_text)


def _command(view: str) -> click.Command:
    @click.command(view, cls=TfprofCommand, help=_HELP[view] + _HELP_ALL)
    @selection_options
    @view_options(view)
    @json_option
    def command(as_json: bool, compat: str, exact: bool, **values: Any) -> None:
        job_options = pop_selection(values)
        texts: Mapping[str, str | None] = values
        parity = Parity(compat, exact)
        _show(view, from_texts(texts, parity=parity), as_json, parity=parity, **job_options)

    return command


scope = _command("scope")
graph = _command("graph")
op = _command("op")
code = _command("code")
