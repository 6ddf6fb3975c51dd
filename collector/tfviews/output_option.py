"""The values of `-output`, in the TF profiler's syntax: `type` or `type:outfile=NAME`."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ...formats.exports import VIEW_EXPORTERS
from ..errors import ViewOptionError

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


class InvalidOutputError(ViewOptionError):
    """An invalid `-output`."""


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
            raise InvalidOutputError(
                f"-output {kind}:{piece} is not {kind}:{_OUTFILE}=FILE",
                "Visualize format: -output timeline:key=value,key=value,...",
            )
        if key != _OUTFILE or kind not in _FILE_TYPES:
            takes = f"only {_OUTFILE}=FILE" if kind in _FILE_TYPES else "none"
            raise InvalidOutputError(
                f"-output {kind} has no option {key}: it takes {takes}",
                f"Unrecognized options {key} for output_type: {kind}\n",
            )
        outfile = value
    return outfile


def parse(text: str) -> OutputChoice:
    """Parse ``text``; InvalidOutputError if it is invalid."""
    if not text:
        return OutputChoice()
    kind, _, options_text = text.partition(":")
    if kind not in TYPES:
        raise InvalidOutputError(
            f"-output {kind} is unknown: it can be {SPELLINGS}",
            f"E.g. Unknown output type: {kind}, Valid types: {','.join(_TF_TYPES)}\n",
        )
    outfile = _outfile(kind, options_text)
    if kind in _FILE_TYPES and not outfile:
        raise InvalidOutputError(
            f"-output {kind} needs a file: -output {kind}:{_OUTFILE}=FILE",
            f"Missing required output_options for {kind}\nE.g. -output {kind}:{_OUTFILE}=...\n",
        )
    return OutputChoice(kind, outfile)
