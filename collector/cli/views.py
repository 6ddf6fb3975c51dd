"""`tfprof scope`, `graph`, `op`, `code`: tfprof's views of jobs."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import click
from tfprof.collector.answers.deliver import Delivery, deliver, refuse
from tfprof.collector.answers.desk import Answer, Desk
from tfprof.collector.cli.about import TfprofCommand, about, about_options, view_options
from tfprof.collector.cli.command import json_option, note, print_pieces
from tfprof.collector.cli.telling import tell
from tfprof.collector.errors import UsageError
from tfprof.collector.render.why_text import why
from tfprof.collector.views.options import Options, from_texts, warnings
from tfprof.collector.views.output import NONE, STDOUT
from tfprof.collector.views.rules import Rules

#: What each view is, in the help.
_SAYS: Final = {
    "scope": """What the nodes of JOB cost, in the tree of their names: layers, towers, optimizers.

    Each row has the node's own numbers, then those with all that is below it.""",
    "graph": """What the nodes of JOB cost, each below the one that uses its output: where a loss comes from.

    Each row has the node's own numbers, then those with all that is below it. A node that several use is below one of them.""",
    "op": """What each op type of JOB cost, as TensorFlow's own profiler counts it.

    Of the two percentages of a number the first is of this row and all below it, the second of this row.""",
    "code": """What each line of Python of JOB cost, in the tree of calls that made the nodes of the graph.

    Each row has the line's own numbers, then those with all that is below it. Stacks are deep: give a large -max_depth.""",
}
_SAYS_ALL: Final = """

    Numbers are averages over the traced steps in which a node ran, added up, or those of one step (-step). Several JOBs are put
    together by the names of nodes. Lists are separated by commas; regexes match whole names."""


def _json(answer: Answer) -> Iterator[str]:
    """Yield the JSON document of an answer: what was asked, and the message of the view."""
    import json  # noqa: PLC0415  # with protobuf, for those who ask for it

    from tfprof.collector.render.json_text import chunks, options_document  # noqa: PLC0415

    about, jobs = answer.about, [job.info.hex for job in answer.about.jobs]
    head = {
        "view": answer.view.name,
        "job": jobs[0] if len(jobs) == 1 else None,
        "jobs": jobs,
        "step": answer.options.step,
        "steps": about.steps,
        "device": about.device,
        "traces": answer.profile.traces if answer.profile else 0,
        "options": options_document(answer.options),
        "note": why(answer),
    }
    yield json.dumps(head, indent=1)[:-2] + ',\n "profile":'
    yield from chunks(answer.message())
    yield "\n}\n"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Leave cycles of objects where they are: a command ends soon, and looking for them takes a quarter of a large view's time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_undisturbed()
def _show(view: str, options: Options, as_json: bool, **asked: Any) -> None:
    if as_json and options.output.type not in {STDOUT, NONE}:
        raise UsageError("--json prints to standard output: leave -output away")
    refuse(view, options)
    desk, what = Desk(), about(**asked)
    if as_json:
        answer = desk.ask(what, view, options, whole=True)
        print_pieces(_json(answer))
        told = Delivery(answer)
    else:
        told = deliver(desk, what, view, options)
    tell(told)


def _command(view: str) -> click.Command:
    @click.command(view, cls=TfprofCommand, help=_SAYS[view] + _SAYS_ALL)
    @about_options
    @view_options(view)
    @json_option
    def command(as_json: bool, compat: str, strict: bool, **given: Any) -> None:
        asked = {name: given.pop(name) for name in ("jobs", "store", "hosts", "pids", "steps", "device")}
        texts: Mapping[str, str | None] = given
        options = from_texts(texts, strict=strict)
        for text in warnings(options):
            note(text)
        _show(view, options, as_json, rules=Rules(compat, strict), **asked)

    return command


scope = _command("scope")
graph = _command("graph")
op = _command("op")
code = _command("code")
