"""The rows of a view: op types, scopes, nodes of a graph, or lines of code."""

from typing import Annotated, Literal, TypedDict

from ..query.engine import Answer
from ..query.own_layout import AnswerRows
from ..summaries.kinds import end_of
from ..summaries.top import short_device
from ..tfviews.nodes import Node, Shape, Stats
from ..tfviews.options import primary_counter
from ..tfviews.rows import Row, extremes
from ..tfviews.tensors import Tensor
from .options import OptionsDocument, options_document


class ViewFields(TypedDict):
    """What a view covers."""

    view: Annotated[str, "op, scope, graph or code."]
    job: Annotated[str | None, "The id of the job; null if there are several."]
    jobs: Annotated[list[str], "The ids of the jobs."]
    step: Annotated[int | None, "The selected step (-step); null for all."]
    steps: Annotated[list[int | None] | None, "The first and the last selected step (--steps); null for all."]
    device: Annotated[str | None, "The selected devices (--device); null for all."]
    kinds: Annotated[dict[str, int], "The kinds of steps that are covered, each with its number of traced steps."]
    other_kinds: Annotated[dict[str, int], "The kinds of steps that are left out."]
    traces: Annotated[int, "The number of traced steps that are covered."]
    options: Annotated[OptionsDocument, "The options of the view."]
    notes: Annotated[list[str], "Why the view is empty or incomplete, and what to know about its figures."]


class CountersDocument(TypedDict):
    """Counters per step: times are medians over the traced steps, the others are means."""

    time_ns: Annotated[float, "The time of the executions, of all threads together, ns."]
    accelerator_ns: Annotated[float, "The part of this time on accelerators, ns."]
    cpu_ns: Annotated[float, "The part of this time on CPUs, ns."]
    runs: Annotated[float, "The number of executions."]
    bytes: Annotated[float, "The memory that was requested, bytes."]
    peak_bytes: Annotated[float, "The peak of the memory in use, bytes."]
    residual_bytes: Annotated[float, "The memory still held when an execution ended, bytes."]
    output_bytes: Annotated[float, "The size of the outputs, bytes."]
    float_ops: Annotated[float, "The number of floating-point operations."]
    params: Annotated[int, "The number of parameters of the model; it does not depend on steps."]


class ViewNodeDocument(CountersDocument):
    """A node of a row, with its own counters."""

    name: Annotated[str, "The name of the node."]
    op: Annotated[str, "Its op type."]
    types: Annotated[list[str], "What -account_type_regexes matches: op type, devices, and labels."]
    devices: Annotated[list[str], "The devices that it ran on: CPU:0, GPU:1."]
    input_shapes: Annotated[list[list[int] | None], "Its input shapes; -1 is an unknown size, null an unknown rank."]


class TensorDocument(TypedDict):
    """The value of a variable, from a checkpoint."""

    dtype: Annotated[int, "The number of its DataType."]
    shape: Annotated[list[int], "Its shape."]
    values: Annotated[list[float | int | str], "Its elements in row-major order."]


class ViewRowDocument(CountersDocument):
    """A row; its counters include the rows below it."""

    name: Annotated[str, "The full name: op type, scope, node, or line of code."]
    label: Annotated[str, "The name without that of the parent, as the text shows it."]
    depth: Annotated[
        int, "The depth in the tree, 0 for the outermost rows; a row follows its parent. With --by, parts have 1."
    ]
    parent: Annotated[int | None, "The position of the parent in `rows`; null at depth 0."]
    share: Annotated[float | None, "The share of the whole, in what rows are sorted by; null without any."]
    min_ns: Annotated[int | None, "`time_ns`, or its shortest time in a traced step if that is less; null if unknown."]
    max_ns: Annotated[int | None, "`time_ns`, or its longest time in a traced step if that is more; null if unknown."]
    own: Annotated[CountersDocument, "The counters without the rows below."]
    definitions: Annotated[int, "The number of its nodes and of entries below it."]
    op: Annotated[str, "The op type with most of the time; of a node, its own. Empty if unknown."]
    line: Annotated[str, "The user's line with most of the time; of a node, its own. Empty if unknown."]
    nodes: Annotated[list[ViewNodeDocument], "The nodes of the row itself."]
    value: Annotated[TensorDocument | None, "The value of the variable, with -select tensor_value; else null."]


class LeftOutDocument(TypedDict):
    """The numbers of entries that have no row."""

    library_calls: Annotated[int, "Calls in libraries; -show_name_regexes '.*' shows them."]


class ViewDocument(ViewFields):
    """The rows of a view, those with most of what they are sorted by first."""

    schema: Annotated[Literal["tfprof.view/1"], "The format and its version."]
    by: Annotated[str | None, "What each op type is taken apart by (--by); null for nothing."]
    all_steps: Annotated[int, "The number of steps of these kinds that ran, traced or not."]
    all_steps_estimated: Annotated[bool, "Whether this number is an estimate."]
    spread_steps: Annotated[int, "The number of steps that `min_ns` and `max_ns` are of; 0 if unknown."]
    share_of: Annotated[str, "What shares are of, by its name in -select."]
    total: Annotated[CountersDocument, "The whole: all nodes that the view counts."]
    left_out: Annotated[LeftOutDocument, "The numbers of entries without a row."]
    rows: Annotated[list[ViewRowDocument], "The rows, each after its parent."]


def view_document(answer_rows: AnswerRows) -> ViewDocument:
    """Return the rows of a view."""
    answer, rows = answer_rows.answer, answer_rows.rows
    primary = primary_counter(answer.options)
    return {
        "schema": "tfprof.view/1",
        **view_fields(answer),
        "notes": list(answer_rows.notes),
        "by": answer.options.by or None,
        "all_steps": answer_rows.all_steps,
        "all_steps_estimated": answer_rows.is_estimate,
        "spread_steps": answer_rows.spread_steps,
        "share_of": primary,
        "total": _counters(rows.total, answer_rows.steps),
        "left_out": {"library_calls": rows.library_count},
        "rows": _rows(answer_rows, primary),
    }


def view_fields(answer: Answer) -> ViewFields:
    """Return what a view covers; the notes are empty."""
    selection, jobs = answer.selection, [job.info.hex for job in answer.selection.jobs]
    return {
        "view": answer.view.name,
        "job": jobs[0] if len(jobs) == 1 else None,
        "jobs": jobs,
        "step": answer.options.step if answer.options.step >= 0 else None,
        "steps": None if selection.steps is None else [selection.steps[0], end_of(selection.steps)],
        "device": selection.device,
        "kinds": dict(answer.profile.kinds) if answer.profile else {},
        "other_kinds": dict(answer.profile.other_kinds) if answer.profile else {},
        "traces": answer.profile.trace_count if answer.profile else 0,
        "options": options_document(answer.options),
        "notes": [],
    }


def _rows(answer_rows: AnswerRows, primary: str) -> list[ViewRowDocument]:
    """Return the rows; the stack ``parents`` has the positions of a row's ancestors."""
    whole, values = getattr(answer_rows.rows.total, primary), answer_rows.answer.values().get("values")
    parents: list[int] = []
    documents: list[ViewRowDocument] = []
    for position, row in enumerate(answer_rows.rows.rows):
        del parents[row.depth :]
        parent = parents[-1] if parents else None
        share = getattr(row.total, primary) / whole if whole else None
        value = values(row.key) if values else None
        documents.append(_row(row, answer_rows.steps, parent, share, value))
        parents.append(position)
    return documents


def _row(row: Row, steps: int, parent: int | None, share: float | None, value: Tensor | None) -> ViewRowDocument:
    min_ns, max_ns = extremes(row.times, row.total.micros / steps) if row.times else (None, None)
    return {
        "name": row.key,
        "label": row.name,
        "depth": row.depth,
        "parent": parent,
        "share": share,
        **_counters(row.total, steps),
        "min_ns": min_ns,
        "max_ns": max_ns,
        "own": _counters(row.own, steps),
        "definitions": row.definitions,
        "op": row.op,
        "line": row.line,
        "nodes": [_node(node, steps) for node in row.nodes],
        "value": None if value is None else tensor_document(value),
    }


def _node(node: Node, steps: int) -> ViewNodeDocument:
    return {
        "name": node.name,
        "op": node.op,
        "types": list(node.op_types),
        "devices": list(map(short_device, node.devices)),
        "input_shapes": list(map(_shape, node.facts.input_shapes)),
        **_counters(node.stats, steps),
    }


def _shape(shape: Shape) -> list[int] | None:
    return list(shape) or None


def _counters(stats: Stats, steps: int) -> CountersDocument:
    """Return counters per step; ``stats`` are sums over ``steps`` steps, with times in ns."""
    return {
        "time_ns": stats.micros / steps,
        "accelerator_ns": stats.accelerator_micros / steps,
        "cpu_ns": stats.cpu_micros / steps,
        "runs": stats.runs / steps,
        "bytes": stats.bytes / steps,
        "peak_bytes": stats.peak_bytes / steps,
        "residual_bytes": stats.residual_bytes / steps,
        "output_bytes": stats.output_bytes / steps,
        "float_ops": stats.float_ops / steps,
        "params": stats.params,
    }


def tensor_document(tensor: Tensor) -> TensorDocument:
    """Return the value of a variable."""
    return {"dtype": tensor.dtype, "shape": list(tensor.shape), "values": list(tensor.values())}
