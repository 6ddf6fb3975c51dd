"""Python stacks in the TF profiler's format: frames refer to texts by number in one table."""

from typing import Any, Final

from ..proto.tfprof_log_pb2 import CodeDef
from ..tfviews.encoding import octets
from ..tfviews.nodes import Frame

#: Text number 0, for unknown texts.
NONE: Final = b"none"
#: Maximum line number of the format, which has 32 bits.
_LINE_MAX: Final = (1 << 31) - 1


class CodeDefs:
    """The stacks of one job, and their table of texts, numbered by first use.

    ``literal``: an empty text and line 0 were recorded as such; otherwise they mean unknown.
    """

    def __init__(self, *, literal: bool = False) -> None:
        self._literal = literal
        self._ids = {NONE: 0}
        self._codes: dict[tuple[Frame, ...], Any] = {}

    def code(self, stack: tuple[Frame, ...]) -> Any:
        """Return the CodeDef of ``stack``."""
        known = self._codes.get(stack)
        if known is None:
            known = self._codes[stack] = CodeDef()
            for frame in stack:
                known.traces.add(
                    file_id=self._id(frame.file),
                    lineno=self._line(frame.line),
                    function_id=self._id(frame.function),
                    func_start_line=self._line(frame.start_line),
                    line_id=self._id(frame.text),
                )
        return known

    def put(self, table: Any) -> None:
        """Copy the texts to ``table``, a map of a message; nothing if there was no stack."""
        if self._codes:
            for text, number in self._ids.items():
                table[number] = text

    def _line(self, number: int) -> int:
        within = min(max(number, -_LINE_MAX), _LINE_MAX)
        return within if within or self._literal else -1

    def _id(self, text: str) -> int:
        return self._ids.setdefault(octets(text), len(self._ids)) if text or self._literal else 0
