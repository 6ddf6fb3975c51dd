"""Where a view's answer goes, as tfprof spells it: `type` or `type:outfile=NAME`."""

from typing import Final, NamedTuple

from ..errors import UsageError

STDOUT, NONE, FILE, TIMELINE, PPROF = "stdout", "none", "file", "timeline", "pprof"
#: The types, in the order that tfprof lists them.
TYPES: Final = (FILE, NONE, PPROF, STDOUT, TIMELINE)
#: Those that write a file, and need its name.
_OUTFILE: Final = "outfile"
_WITH_FILE: Final = frozenset({FILE, PPROF, TIMELINE})


class InvalidOutputError(UsageError):
    """An `-output` that names none; the message is tfprof's own."""


class Output(NamedTuple):
    """A type of output and the file that it is written to, where it is."""

    type: str = STDOUT
    outfile: str = ""

    def __str__(self) -> str:
        """Return what tfprof prints of it."""
        return f"{self.type}:{_OUTFILE}={self.outfile}" if self.outfile else f"{self.type}:"


def _outfile(kind: str, text: str) -> str:
    """Return the file among the options after the colon, '' without; of a key given twice the last counts."""
    outfile = ""
    for piece in filter(None, text.split(",")):
        key, _, value = piece.partition("=")
        if not key or not value:
            raise InvalidOutputError("Visualize format: -output timeline:key=value,key=value,...")
        if key != _OUTFILE or kind not in _WITH_FILE:
            raise InvalidOutputError(f"Unrecognized options {key} for output_type: {kind}\n")
        outfile = value
    return outfile


def parse(text: str) -> Output:
    """Return what ``text`` names; InvalidOutputError in tfprof's words when it is none of them."""
    if not text:
        return Output()
    kind, _, rest = text.partition(":")
    if kind not in TYPES:
        raise InvalidOutputError(f"E.g. Unknown output type: {kind}, Valid types: {','.join(TYPES)}\n")
    outfile = _outfile(kind, rest)
    if kind in _WITH_FILE and not outfile:
        raise InvalidOutputError(f"Missing required output_options for {kind}\nE.g. -output {kind}:{_OUTFILE}=...\n")
    return Output(kind, outfile)
