"""The options of tfprof's views: names, defaults and checks, in one written table."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tfprof.collector.errors import UsageError

#: What `-select` may name, in TensorFlow's words.
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
#: Minima and the counter that each one limits.
MINIMA: Final = {
    "min_bytes": "bytes",
    "min_peak_bytes": "peak_bytes",
    "min_residual_bytes": "residual_bytes",
    "min_output_bytes": "output_bytes",
    "min_micros": "micros",
    "min_accelerator_micros": "accelerator_micros",
    "min_cpu_micros": "cpu_micros",
    "min_params": "params",
    "min_float_ops": "float_ops",
    "min_occurrence": "occurrence",
}
ALL: Final = (".*",)
TRUE_WORDS: Final = frozenset({"true", "t", "yes", "y", "1"})
FALSE_WORDS: Final = frozenset({"false", "f", "no", "n", "0"})


@dataclass(frozen=True, slots=True)
class Options:
    """What a view accounts, shows and prints; empty regex lists mean nothing, `('.*',)` everything."""

    max_depth: int = 10
    min_bytes: int = 0
    min_peak_bytes: int = 0
    min_residual_bytes: int = 0
    min_output_bytes: int = 0
    min_micros: int = 0
    min_accelerator_micros: int = 0
    min_cpu_micros: int = 0
    min_params: int = 0
    min_float_ops: int = 0
    min_occurrence: int = 0
    step: int = -1
    order_by: str = "name"
    account_type_regexes: tuple[str, ...] = ALL
    start_name_regexes: tuple[str, ...] = ALL
    trim_name_regexes: tuple[str, ...] = ()
    show_name_regexes: tuple[str, ...] = ALL
    hide_name_regexes: tuple[str, ...] = ()
    account_displayed_op_only: bool = False
    select: frozenset[str] = field(default_factory=lambda: frozenset({"micros"}))

    @property
    def minima(self) -> list[tuple[str, int]]:
        """Counter names with the least value that is shown; a least of 0 hides wrapped, negative totals, as in tfprof."""
        return [(counter, getattr(self, option)) for option, counter in MINIMA.items()]


class Matcher:
    """A list of regexes that match whole names, as RE2's full match does."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self.everything = patterns == ALL
        self.patterns = tuple(re.compile(pattern, re.ASCII) for pattern in patterns)

    def __call__(self, name: str) -> bool:
        """Say whether a pattern matches the whole of ``name``."""
        return self.everything or any(pattern.fullmatch(name) for pattern in self.patterns)


def _invalid(name: str, value: str, hint: str) -> UsageError:
    return UsageError(f"Invalid option '-{name}' value: '{value}' ({hint})")


def pieces(value: str) -> list[str]:
    """Split a comma-separated value as tfprof's shell does: quotes around a piece and empty pieces are dropped."""
    return [piece for raw in value.split(",") if (piece := raw.strip().strip("'\""))]


def _number(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise _invalid(name, value, "a whole number") from None


def _order(name: str, value: str) -> str:
    if value not in ORDERS:
        raise _invalid(name, value, "one of " + " ".join(ORDERS))
    return value


def _regexes(name: str, value: str) -> tuple[str, ...]:
    patterns = tuple(pieces(value))
    for pattern in patterns:
        try:
            re.compile(pattern, re.ASCII)
        except re.error as error:
            raise _invalid(name, pattern, f"not a regular expression: {error}") from None
    return patterns


def _truth(name: str, value: str) -> bool:
    word = value.lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise _invalid(name, value, "true or false")
    return word in TRUE_WORDS


def _select(name: str, value: str) -> frozenset[str]:
    words = pieces(value)
    for word in words:
        if word not in SELECTS:
            raise _invalid(name, word, "one of " + " ".join(SELECTS))
    if not words:
        raise _invalid(name, value, "one of " + " ".join(SELECTS))
    return frozenset(words)


class Option(NamedTuple):
    """One row of the table of options: its name, how its text is read, and what it does."""

    name: str
    parse: Callable[[str, str], object]
    metavar: str
    help: str


TABLE: Final = (
    Option("max_depth", _number, "N", "Show entries up to this position, counted from 0 (10)."),
    Option("min_bytes", _number, "B", "Hide what requested fewer bytes, counted with all entries after it."),
    Option("min_peak_bytes", _number, "B", "The same for peak bytes."),
    Option("min_residual_bytes", _number, "B", "The same for bytes still held when the op ended."),
    Option("min_output_bytes", _number, "B", "The same for bytes of outputs."),
    Option("min_micros", _number, "US", "Hide what ran for less, counted with all entries after it."),
    Option("min_accelerator_micros", _number, "US", "The same for time on accelerators."),
    Option("min_cpu_micros", _number, "US", "The same for time on the CPU."),
    Option("min_params", _number, "N", "The same for numbers of parameters."),
    Option("min_float_ops", _number, "N", "The same for floating-point operations."),
    Option("min_occurrence", _number, "N", "Hide op types with fewer nodes in the graph."),
    Option("step", _number, "N", "Use this traced step only; -1: the average of each node's traced steps (-1)."),
    Option("order_by", _order, "WHAT", "Sort by " + ", ".join(ORDERS) + " (name)."),
    Option("account_type_regexes", _regexes, "R,R", "Count nodes whose op type or device matches (.*)."),
    Option("start_name_regexes", _regexes, "R,R", "Show from the first entry that matches (.*)."),
    Option("trim_name_regexes", _regexes, "R,R", "Stop at the first entry that matches."),
    Option("show_name_regexes", _regexes, "R,R", "Show only entries that match (.*)."),
    Option("hide_name_regexes", _regexes, "R,R", "Hide entries that match."),
    Option("account_displayed_op_only", _truth, "BOOL", "Totals are of what is shown only (false)."),
    Option("select", _select, "A,B", "Columns: " + ", ".join(SELECTS) + " (micros)."),
)


def from_texts(texts: Mapping[str, str | None]) -> Options:
    """Build options from texts by option name, None for those not given; raise UsageError on the first bad one."""
    values = {
        option.name: option.parse(option.name, text) for option in TABLE if (text := texts.get(option.name)) is not None
    }
    return Options(**values)  # type: ignore[arg-type]
