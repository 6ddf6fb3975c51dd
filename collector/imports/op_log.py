"""Converts an OpLogProto into rows, merged by node."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..decoders.columns import from_rows
from .files import BadFileError, has_unknown_fields, text_of
from .stacks import ImportedRows, Stacks


@dataclass(slots=True)
class _NodeRow:
    float_ops: int = 0
    types: dict[str, None] = field(default_factory=dict)  # an ordered set
    has_code: bool = False


class OpLog(NamedTuple):
    """The rows of an op log by table.

    ``ignored``: number of entries that were ignored, since the graph lacks their node.
    """

    rows: ImportedRows
    ignored: int


def op_log(message: Any, names: Collection[str], path: str) -> OpLog:
    """Return the facts in an OpLogProto about the nodes ``names``, as the TF profiler reads them.

    Several entries of one node are merged: each type once, the last number of operations other than
    0, the first stack. BadFileError if the message is empty or of another kind.
    """
    if not message.ByteSize() or has_unknown_fields((message, *message.log_entries)):
        raise BadFileError(
            f"{path} is not a valid OpLogProto: {'it has unknown fields' if message.ByteSize() else 'it is empty'}"
        )
    stacks = Stacks(message.id_to_string, path)
    nodes: dict[str, _NodeRow] = {}
    ignored = 0
    for entry in message.log_entries:
        name = text_of(entry.name, path)
        if name not in names:
            ignored += 1
            continue
        row = nodes.setdefault(name, _NodeRow())
        row.float_ops = entry.float_ops or row.float_ops
        row.types |= dict.fromkeys(text_of(text, path) for text in entry.types)
        if entry.HasField("code_def"):
            row.has_code = True
            stacks.add(name, entry.code_def)
    rows: list[tuple[Any, ...]] = [
        (0, name, row.float_ops, list(row.types), row.has_code, []) for name, row in nodes.items()
    ]
    return OpLog({"op_log": from_rows(rows, "op_log"), **stacks.rows()}, ignored)
