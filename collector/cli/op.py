"""`tfprof op`: what each op type cost."""

from collections.abc import Callable
from typing import Any, Final

import click
from tfprof.collector.cli.arguments import translate
from tfprof.collector.cli.command import job_argument, json_option, note, print_json, print_lines, store_option
from tfprof.collector.profile import GRAPH, Profile, profile
from tfprof.collector.render import op_text
from tfprof.collector.store.catalog import RUNNING
from tfprof.collector.store.reader import Job, Store
from tfprof.collector.views.jobs import words
from tfprof.collector.views.nodes import Node, Stats
from tfprof.collector.views.op import Entry, OpView, op_view
from tfprof.collector.views.options import TABLE, Options, from_texts

#: What TensorFlow's messages call the counters.
_FIELDS: Final = {
    "exec_micros": "micros",
    "accelerator_exec_micros": "accelerator_micros",
    "cpu_exec_micros": "cpu_micros",
    "requested_bytes": "bytes",
    "peak_bytes": "peak_bytes",
    "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes",
    "parameters": "params",
    "float_ops": "float_ops",
}
_NEEDS_GRAPH: Final = frozenset({"params", "input_shapes"})


class TfprofCommand(click.Command):
    """A command whose options may be spelled as tfprof spells them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse ``args`` in click's spelling."""
        return super().parse_args(ctx, translate(args))


def _view_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(TABLE):
        name = f"--{option.name.replace('_', '-')}"
        command = click.option(name, option.name, metavar=option.metavar, help=option.help)(command)
    return command


def _counters(own: Stats, running: Stats) -> dict[str, int]:
    return {name: getattr(own, counter) for name, counter in _FIELDS.items()} | {
        f"total_{name}": getattr(running, counter) for name, counter in _FIELDS.items()
    }


def _node(node: Node) -> dict[str, Any]:
    inputs = {str(at): list(shape) or None for at, shape in enumerate(node.facts.input_shapes)}
    counters = {name: getattr(node.stats, counter) for name, counter in _FIELDS.items()}
    return {
        "name": node.name,
        "run_count": node.stats.runs,
        **counters,
        "devices": list(node.devices),
        "input_shapes": inputs,
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        **_counters(entry.own, entry.running),
        "run_count": entry.runs,
        "definition_count": len(entry.nodes),
        "graph_nodes": [_node(node) for node in entry.nodes],
    }


def _document(job: Job, options: Options, found: Profile | None, view: OpView) -> dict[str, Any]:
    total = {f"total_{name}": getattr(view.total, counter) for name, counter in _FIELDS.items()}
    return {
        "view": "op",
        "job": job.info.hex,
        "step": options.step,
        "traces": found.traces if found else 0,
        **total,
        "accounted": view.accounted,
        "entries": [_entry(entry) for entry in view.entries],
    }


def untraced(job: Job) -> str:
    """Say why nothing is known of a job's ops."""
    values = words(job.info)
    traced_steps, running = values.get("traced") or 0, job.info.state == RUNNING
    if traced_steps and values.get("dropped_traces") == traced_steps:
        return f"no traced steps: all {traced_steps} found no room, because the collector did not keep up"
    if traced_steps and running:
        return f"no traced steps stored yet: {traced_steps} are on their way"
    if traced_steps:
        return f"no traced steps: what was recorded of {traced_steps} did not reach the store, or held no ops"
    if running:
        return "no traced steps yet: the job has not come so far, or its tracing is off"
    return "no traced steps: the job ended before its first one, or its tracing was off (tfprof-run --trace)"


def _left_out(view: OpView) -> str:
    if not view.accounted:
        return f"none of {view.op_types} op types has a node that -account_type_regexes matches"
    why = (
        (view.before, "before -start_name_regexes"),
        (view.hidden, "hidden by -min_…, -show_… or -hide_name_regexes"),
        (view.after, "beyond -max_depth or -trim_name_regexes"),
    )
    told = ", ".join(f"{number} {where}" for number, where in why if number)
    return f"{len(view.entries)} of {view.accounted} op types shown: {told}"


@click.command(cls=TfprofCommand)
@job_argument
@_view_options
@json_option
@store_option
def op(job: str, store: str, as_json: bool, **texts: str | None) -> None:
    """What each op type of JOB cost, as TensorFlow's own profiler counts it.

    Numbers are averages over the traced steps in which a node ran, or those of one traced step (-step).
    Options may be written -max_depth 4 or --max-depth 4; lists are separated by commas.
    """
    options = from_texts(texts)
    chosen = Store(store).job(job)
    needs = as_json or options.order_by == "params" or options.min_params > 0 or bool(options.select & _NEEDS_GRAPH)
    found = profile(chosen, options.step, needs=[GRAPH] if needs else [])
    view = op_view(found.nodes if found else [], options)
    if as_json:
        print_json(_document(chosen, options, found, view))
    elif found is not None and view.entries:
        print_lines(op_text.lines(view, options.select))
    if found is None:
        note(untraced(chosen))
    elif len(view.entries) < max(1, view.accounted):
        note(_left_out(view))
