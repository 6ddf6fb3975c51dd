"""Converts Python stacks in files of the TF profiler into rows of `frames` and `stacks`."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ..decoders.columns import from_rows
from ..export.code_defs import NONE
from .files import BadFileError, text_of

ImportedRows = dict[str, pa.RecordBatch]

#: Frames of a stack: file, line, function, first line of the function, text of the line.
_Stack = tuple[tuple[str, int, str, int, str], ...]


class Stacks:
    """The stacks of one file, each stored once.

    ``strings``: the file's table of texts. ``path``: the file's name in errors.
    """

    def __init__(self, strings: Mapping[int, bytes], path: str) -> None:
        self._strings = {0: NONE, **strings}
        self._path = path
        self._numbers: dict[_Stack, int] = {}
        self._nodes: dict[str, int] = {}

    def add(self, name: str, code: Any) -> None:
        """Set the stack of node ``name`` to the CodeDef ``code``, unless the node has a stack."""
        if name not in self._nodes:
            stack = tuple(self._frame(trace) for trace in code.traces)
            self._nodes[name] = self._numbers.setdefault(stack, len(self._numbers))

    def rows(self) -> ImportedRows:
        """Return the rows of graph 0, by table."""
        frames = [
            (0, number, position, *frame)
            for stack, number in self._numbers.items()
            for position, frame in enumerate(stack)
        ]
        nodes = [(0, name, number) for name, number in self._nodes.items()]
        return {"frames": from_rows(frames, "frames"), "stacks": from_rows(nodes, "stacks")}

    def _frame(self, trace: Any) -> tuple[str, int, str, int, str]:
        return (
            self._text(trace.file, trace.file_id),
            trace.lineno,
            self._text(trace.function, trace.function_id),
            trace.func_start_line,
            self._text(trace.line, trace.line_id),
        )

    def _text(self, inline_text: bytes, number: int) -> str:
        """Return a text of a frame.

        Older files contain ``inline_text`` in the frame; newer ones refer to entry ``number`` of
        their table.
        """
        if inline_text:
            return text_of(inline_text, self._path)
        if number not in self._strings:
            raise BadFileError(
                f"{self._path} is damaged: a stack refers to text {number}, which its table does not have"
            )
        return text_of(self._strings[number], self._path)
