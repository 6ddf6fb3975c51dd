"""The values of options: their words, and how they are read from text and from Python values."""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from ...formats.exports import VIEW_EXPORTERS
from ..errors import UsageError, ViewOptionError

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


def parse_output(text: str) -> OutputChoice:
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


#: Attributes that `-select` accepts, with TensorFlow's names.
SELECTS: Final = (
    "bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
    "micros",
    "accelerator_micros",
    "cpu_micros",
    "params",
    "float_ops",
    "tensor_value",
    "device",
    "op_types",
    "occurrence",
    "input_shapes",
)
ORDERS: Final = (
    "name",
    "bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
    "micros",
    "accelerator_micros",
    "cpu_micros",
    "params",
    "float_ops",
    "occurrence",
)
#: Columns that only tfprof has.
OWN_SELECTS: Final = ("line", "calls")
#: Orders that only tfprof has: by the number of executions.
OWN_ORDERS: Final = ("calls",)
#: Other words for the attributes, of `-select` and `-order_by`, among them the titles of columns.
SYNONYMS: Final = {
    "time": "micros",
    "gpu_time": "accelerator_micros",
    "cpu_time": "cpu_micros",
    "memory": "bytes",
    "peak_memory": "peak_bytes",
    "residual_memory": "residual_bytes",
    "output_memory": "output_bytes",
    "parameters": "params",
    "flops": "float_ops",
    "count": "occurrence",
    "shapes": "input_shapes",
    "types": "op_types",
    **dict.fromkeys(("time/step", "share", "self", "min/median/max"), "micros"),
    "requested/step": "bytes",
    "peak/step": "peak_bytes",
    **dict.fromkeys(("kept", "kept/step"), "residual_bytes"),
    **dict.fromkeys(("outputs", "outputs/step"), "output_bytes"),
    "flops/step": "float_ops",
    "calls/step": "calls",
    "nodes": "occurrence",
}
#: Factors of a minimum's unit: of times (to µs), of bytes, and of other numbers.
_TIME_UNITS: Final = {"us": 1, "µs": 1, "ms": 1000, "s": 1_000_000}
_BYTE_UNITS: Final = {
    f"{prefix}{suffix}": base**power
    for power, prefix in enumerate(("", "k", "m", "g", "t"))
    for suffix, base in (("b", 1000), ("ib", 1024), *([("", 1024)] if prefix else []))
    if prefix or suffix == "b"
}
_COUNT_UNITS: Final = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
TRUE_WORDS: Final = frozenset({"true", "t", "yes", "y", "1"})
FALSE_WORDS: Final = frozenset({"false", "f", "no", "n", "0"})
_NUMBER: Final = re.compile(r"-?[0-9]+", re.ASCII)
_QUANTITY: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([a-zµ]+)")
_PERCENTAGE: Final = re.compile(r"([0-9]{1,2}(?:\.[0-9]{1,6})?|100) ?%", re.ASCII)
_LIMIT: Final = 1 << 63


def invalid(name: str, value: object, hint: str = "") -> UsageError:
    """Return the TF profiler's error for an option's value, with valid values in brackets."""
    return UsageError(f"Invalid option '-{name}' value: '{value}'" + (f" ({hint})" if hint else ""))


def pieces(value: str) -> list[str]:
    """Split a comma-separated value like the TF profiler's shell.

    Quotes around pieces, and empty pieces, are dropped.
    """
    return [piece for raw in value.split(",") if (piece := raw.strip().strip("'\""))]


# -- values from text ------------------------------------------------------------------------------


def _number(name: str, value: str) -> int:
    number = int(text) if _NUMBER.fullmatch(text := value.strip()) and len(text) <= 20 else None
    if number is None or not -_LIMIT <= number < _LIMIT:
        raise invalid(name, value, "a whole number of at most 64 bits")
    return number


class Share(float):
    """A minimum as a share of the total of its counter; 0.1 is 10 %."""

    __slots__ = ()


def _quantity(units: Mapping[str, int], examples: str, *, has_shares: bool = True) -> Callable[[str, str], int | Share]:
    """Return a parser of numbers with or without one of ``units``.

    ``examples`` are for the error. ``has_shares``: percentages are accepted, too.
    """

    def parse(name: str, value: str) -> int | Share:
        if has_shares and (percentage := _PERCENTAGE.fullmatch(value.strip())):
            return Share(float(percentage[1]) / 100)
        match = _QUANTITY.fullmatch(value.strip().lower())
        if match is None or match[2] not in units:
            if not _NUMBER.fullmatch(value.strip()):
                raise invalid(name, value, f"a whole number of at most 64 bits, or for example {examples}")
            return _number(name, value)
        return _number(name, str(math.ceil(Decimal(match[1]) * units[match[2]])))

    return parse


def _order(name: str, value: str) -> str:
    value = _attribute(value)
    if value not in ORDERS + OWN_ORDERS:
        raise invalid(name, value, "one of " + " ".join(ORDERS))
    return value


def _attribute(word: str) -> str:
    """Return the TF profiler's name of an attribute; `GPU time`, the title, is `gpu_time`."""
    return SYNONYMS.get(word, SYNONYMS.get(word.lower().replace(" ", "_"), word))


def _boolean(name: str, value: str) -> bool:
    word = value.lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise invalid(name, value, "true or false")
    return word in TRUE_WORDS


def _select(name: str, value: str) -> frozenset[str]:
    words = [_attribute(word) for word in pieces(value)]
    for word in words or [value]:
        if word not in SELECTS + OWN_SELECTS:
            raise invalid(name, value, "one of " + " ".join(SELECTS))
    return frozenset(words)


# -- values from Python ---------------------------------------------------------------


def _integer(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise invalid(name, value, f"a whole number, not {type(value).__name__}") from None
    if isinstance(value, bool) or not -_LIMIT <= number < _LIMIT:
        raise invalid(name, value, "a whole number of at most 64 bits")
    return number


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    return bool(_integer(name, value))


def text_of(name: str, value: Any) -> str:
    """Return a Python value that must be a string; UsageError if it is not."""
    try:
        text = value.decode() if isinstance(value, bytes) else value
        if isinstance(text, str):
            text.encode()
            return text
    except UnicodeError:
        pass
    raise invalid(name, value, "a string")


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise invalid(name, value, "a list of strings")
    return tuple(text_of(name, item) for item in value)


class ValueType(NamedTuple):
    """A type of option value: its parsers from text and from Python, and its default in Python."""

    from_text: Callable[[str, str], object]
    from_python: Callable[[str, Any], object]
    python_default: object = None


NUMBER: Final = ValueType(_number, _integer)
MICROS: Final = ValueType(_quantity(_TIME_UNITS, "1.5ms or 10%"), _integer)
BYTES: Final = ValueType(_quantity(_BYTE_UNITS, "10MB or 4KiB or 10%"), _integer)
COUNT: Final = ValueType(_quantity(_COUNT_UNITS, "2M or 10%"), _integer)
#: How often a node ran; a total of such numbers has no meaning.
OCCURRENCE: Final = ValueType(_quantity(_COUNT_UNITS, "2k", has_shares=False), _integer)
ORDER: Final = ValueType(_order, text_of)
REGEXES: Final = ValueType(lambda _, value: tuple(pieces(value)), _texts, ())
BOOLEAN: Final = ValueType(_boolean, _flag)
SELECT: Final = ValueType(_select, lambda name, value: frozenset(_texts(name, value)), frozenset())
OUTPUT: Final = ValueType(lambda _, value: parse_output(value), lambda name, value: parse_output(text_of(name, value)))
