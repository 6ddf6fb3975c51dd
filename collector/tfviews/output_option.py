"""The values of `-output`, in the TF profiler's syntax: `type` or `type:outfile=NAME`."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ..errors import UsageError
from ..exports import VIEW_EXPORTERS

STDOUT, NONE, FILE, TIMELINE, PPROF = "stdout", "none", "file", "timeline", "pprof"
_OUTFILE: Final = "outfile"


class File(NamedTuple):
    """A file that an exporter makes, with the lines and warnings to print about it."""

    path: str
    data: bytes | Iterable[bytes]
    lines: Iterable[str] = ()
    warnings: Iterable[str] = ()


#: Types that write a file and need its name.
_FILE_TYPES: Final = frozenset(VIEW_EXPORTERS)
#: All types, and those of the TF profiler in the order of its error message.
TYPES: Final = frozenset({STDOUT, NONE} | _FILE_TYPES)
_TF_TYPES: Final = (FILE, NONE, PPROF, STDOUT, TIMELINE)
#: All spellings of the option's value, for an error message.
*_FIRST, _LAST = (STDOUT, NONE, *(f"{name}:{_OUTFILE}=F" for name in VIEW_EXPORTERS))
SPELLINGS: Final = f"{', '.join(_FIRST)} or {_LAST}"


def output_help(view: str) -> str:
    """Return the help of `-output` in ``view``."""
    file_choices = [f"{row.name}:{_OUTFILE}=F{row.remark}" for row in VIEW_EXPORTERS.values() if view in row.views]
    *choices, last_choice = STDOUT, NONE, *file_choices
    return f"{', '.join(choices)}, or {last_choice} ({STDOUT})."


class InvalidOutputError(UsageError):
    """An invalid `-output`; the message is the TF profiler's."""


class OutputChoice(NamedTuple):
    """A type of output, and its file if it has one."""

    type: str = STDOUT
    outfile: str = ""

    def __str__(self) -> str:
        """Return the text that the TF profiler prints for it."""
        return f"{self.type}:{_OUTFILE}={self.outfile}" if self.outfile else f"{self.type}:"


def _outfile(kind: str, text: str) -> str:
    """Return the file in ``text``, the options after the colon; '' if they name no file.

    If a key is repeated, the last one is used.
    """
    outfile = ""
    for piece in filter(None, text.split(",")):
        key, _, value = piece.partition("=")
        if not key or not value:
            raise InvalidOutputError("Visualize format: -output timeline:key=value,key=value,...")
        if key != _OUTFILE or kind not in _FILE_TYPES:
            raise InvalidOutputError(f"Unrecognized options {key} for output_type: {kind}\n")
        outfile = value
    return outfile


def parse(text: str) -> OutputChoice:
    """Parse ``text``; InvalidOutputError with the TF profiler's message if it is invalid."""
    if not text:
        return OutputChoice()
    kind, _, options_text = text.partition(":")
    if kind not in TYPES:
        raise InvalidOutputError(f"E.g. Unknown output type: {kind}, Valid types: {','.join(_TF_TYPES)}\n")
    outfile = _outfile(kind, options_text)
    if kind in _FILE_TYPES and not outfile:
        raise InvalidOutputError(f"Missing required output_options for {kind}\nE.g. -output {kind}:{_OUTFILE}=...\n")
    return OutputChoice(kind, outfile)
