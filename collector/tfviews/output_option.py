"""The values of `-output`, in the TF profiler's syntax: `type` or `type:outfile=NAME`."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ..errors import UsageError

STDOUT, NONE, FILE, TIMELINE, PPROF = "stdout", "none", "file", "timeline", "pprof"
_OUTFILE: Final = "outfile"


class File(NamedTuple):
    """A file that an exporter makes, with the lines and warnings to print about it."""

    path: str
    data: bytes | Iterable[bytes]
    lines: Iterable[str] = ()
    warnings: Iterable[str] = ()


class FileOutputType(NamedTuple):
    """A type of `-output` that writes files.

    The exporter collector/exporters/NAME.py makes the files. ``views``: the views that support this
    type; ``refusal``: the message for other views, the TF profiler's if it has one; ``remark``: a
    remark for the help.
    """

    name: str
    views: frozenset[str]
    refusal: str = ""
    remark: str = ""

    @property
    def spelling(self) -> str:
        """The spelling of the option's value."""
        return f"{self.name}:{_OUTFILE}=F"


#: One row for each exporter, in the order of the help.
FILE_OUTPUT_TYPES: Final = (
    FileOutputType(FILE, frozenset({"scope", "graph", "op", "code"})),
    FileOutputType(
        TIMELINE,
        frozenset({"scope", "graph", "code"}),
        "op view doesn't support timeline yet. Consider graph/scope/code view.",
        " for a trace",
    ),
    FileOutputType(PPROF, frozenset({"code"}), "Only 'code' view supports pprof output now."),
)
#: Types that write a file and need its name.
_FILE_TYPES: Final = frozenset(row.name for row in FILE_OUTPUT_TYPES)
#: All types, and those of the TF profiler in the order of its error message.
TYPES: Final = frozenset({STDOUT, NONE} | _FILE_TYPES)
_TF_TYPES: Final = (FILE, NONE, PPROF, STDOUT, TIMELINE)
#: All spellings of the option's value, for an error message.
SPELLINGS: Final = (
    f"{', '.join((STDOUT, NONE, *(row.spelling for row in FILE_OUTPUT_TYPES[:-1])))}"
    f" or {FILE_OUTPUT_TYPES[-1].spelling}"
)


def output_help(view: str) -> str:
    """Return the help of `-output` in ``view``."""
    file_choices = [row.spelling + row.remark for row in FILE_OUTPUT_TYPES if view in row.views]
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
