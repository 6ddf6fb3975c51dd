"""Python stacks in the TF profiler's format: frames refer to the texts of one table by number."""

from typing import Any, Final

from ..proto.tfprof_log_pb2 import CodeDef
from ..tfviews.encoding import octets
from ..tfviews.nodes import Frame

#: Text number 0, for unknown texts.
NONE: Final = b"none"
#: Maximum line number of the format, which has 32 bits.
_LINE_MAX: Final = (1 << 31) - 1


class CodeDefs:
    """The stacks of one job, and the table of their texts, numbered in the order of first use.

    ``literal``: empty texts and line 0 are written as they are. Otherwise they are written as
    unknown.
    """

    def __init__(self, *, literal: bool = False) -> None:
        self._literal = literal
        self._text_ids = {NONE: 0}
        self._code_defs: dict[tuple[Frame, ...], Any] = {}

    def code_def(self, stack: tuple[Frame, ...]) -> Any:
        """Return the CodeDef of ``stack``."""
        code_def = self._code_defs.get(stack)
        if code_def is None:
            code_def = self._code_defs[stack] = CodeDef()
            for frame in stack:
                code_def.traces.add(
                    file_id=self._text_id(frame.file),
                    lineno=self._line(frame.line),
                    function_id=self._text_id(frame.function),
                    func_start_line=self._line(frame.start_line),
                    line_id=self._text_id(frame.text),
                )
        return code_def

    def fill_table(self, table: Any) -> None:
        """Copy the texts to ``table``, a map field of a message, if there was any stack."""
        if self._code_defs:
            for text, number in self._text_ids.items():
                table[number] = text

    def _line(self, number: int) -> int:
        clamped = min(max(number, -_LINE_MAX - 1), _LINE_MAX)
        return clamped if clamped or self._literal else -1

    def _text_id(self, text: str) -> int:
        return self._text_ids.setdefault(octets(text), len(self._text_ids)) if text or self._literal else 0
