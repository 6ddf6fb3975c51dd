"""The options of tfprof's views: names, defaults and what they do, in one written table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ..errors import UsageError
from .matcher import ALL, Matcher, wrong
from .option_values import NUMBER, ORDER, ORDERS, OUTPUT, REGEXES, SELECT, SELECTS, TRUTH, Kind, invalid, text_of
from .output import FILE, Output

__all__ = [
    "ALL",
    "MINIMA",
    "ORDERS",
    "SELECTS",
    "TABLE",
    "Matcher",
    "Option",
    "Options",
    "Output",
    "from_dict",
    "from_texts",
]

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
_DEFAULT_SELECT: Final = frozenset({"micros"})
_STDOUT: Final = Output()


@dataclass(frozen=True, slots=True)
class Options:
    """What a view accounts, shows and prints; empty regex lists mean nothing, `('.*',)` everything.

    `given` are the names of the options that somebody gave, be it with the value of the default.
    """

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
    select: frozenset[str] = _DEFAULT_SELECT
    output: Output = _STDOUT
    given: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def minima(self) -> list[tuple[str, int]]:
        """Counter names with the least value that is shown; a least of 0 hides wrapped, negative totals, as in tfprof."""
        return [(counter, getattr(self, option)) for option, counter in MINIMA.items()]


class Option(NamedTuple):
    """One row of the table of options: its name, how its values are read, and what it does.

    ``help`` is true of the scope and the graph view; ``op`` and ``code`` say what is different there. ``least``: numbers below
    it mean nothing; tfprof takes them.
    """

    name: str
    kind: Kind
    metavar: str
    help: str
    op: str = ""
    code: str = ""
    least: int = 0

    def explained(self, view: str) -> str:
        """Return what the option does in ``view``."""
        return {"op": self.op, "code": self.code}.get(view) or self.help


#: In the order of the table that tfprof prints.
TABLE: Final = (
    Option(
        "max_depth",
        NUMBER,
        "N",
        "Show so many levels, the root counted (all; in TensorFlow's layout 10).",
        op="Show entries up to this position, counted from 0 (all; in TensorFlow's layout 10).",
    ),
    Option(
        "min_bytes",
        NUMBER,
        "B",
        "Hide what requested fewer bytes, with all below it.",
        op="Hide what requested fewer bytes, with all rows after it.",
    ),
    Option("min_peak_bytes", NUMBER, "B", "The same for peak bytes."),
    Option("min_residual_bytes", NUMBER, "B", "The same for bytes still held when the op ended."),
    Option("min_output_bytes", NUMBER, "B", "The same for bytes of outputs."),
    Option(
        "min_micros",
        NUMBER,
        "US",
        "Hide what ran for less, with all below it.",
        op="Hide what ran for less, with all rows after it.",
    ),
    Option("min_accelerator_micros", NUMBER, "US", "The same for time on accelerators."),
    Option("min_cpu_micros", NUMBER, "US", "The same for time on the CPU."),
    Option(
        "min_params",
        NUMBER,
        "N",
        "Hide nodes that have fewer parameters themselves.",
        op="Hide what has fewer parameters, with all rows after it.",
        code="Hide what has fewer parameters, with all below it.",
    ),
    Option(
        "min_float_ops",
        NUMBER,
        "N",
        "Hide nodes that do fewer floating-point operations themselves.",
        op="Hide what does fewer floating-point operations, with all rows after it.",
        code="Hide what does fewer floating-point operations, with all below it.",
    ),
    Option(
        "min_occurrence",
        NUMBER,
        "N",
        "Hide nodes that ran less often.",
        op="Hide op types with fewer nodes in the graph.",
        code="No effect in this view.",
    ),
    Option("step", NUMBER, "N", "This traced step only; -1: the average of each node's traced steps (-1).", least=-1),
    Option(
        "order_by",
        ORDER,
        "WHAT",
        "Sort those side by side by " + ", ".join(ORDERS[:-1]) + " (the first column; in TensorFlow's layout name).",
        op="Sort by " + ", ".join(ORDERS) + " (the first column; in TensorFlow's layout name).",
        code="Sort those side by side by " + ", ".join(ORDERS) + " (the first column; in TensorFlow's layout name).",
    ),
    Option("account_type_regexes", REGEXES, "R,R", "Count nodes of which op type, device or a label matches (.*)."),
    Option(
        "start_name_regexes",
        REGEXES,
        "R,R",
        "Show only the topmost entries that match, and what is below them (.*).",
        op="Show from the first entry that matches (.*).",
    ),
    Option(
        "trim_name_regexes",
        REGEXES,
        "R,R",
        "Show nothing below entries that match.",
        op="Stop at the first entry that matches.",
        code="Leave out entries that match, with all below them.",
    ),
    Option(
        "show_name_regexes",
        REGEXES,
        "R,R",
        "Show only entries that match; what is below the others moves up (.*).",
        op="Show only entries that match (.*).",
    ),
    Option("hide_name_regexes", REGEXES, "R,R", "Hide entries that match."),
    Option(
        "account_displayed_op_only",
        TRUTH,
        "BOOL",
        "Totals are of what is shown only (false).",
        code="No effect in this view.",
    ),
    Option("select", SELECT, "A,B", "Columns: " + ", ".join(SELECTS) + " (time, calls and lines)."),
    Option(
        "output",
        OUTPUT,
        "WHERE",
        "stdout, none, file:outfile=F, or timeline:outfile=F for a trace (stdout).",
        op="stdout, none, or file:outfile=F (stdout).",
        code="stdout, none, file:outfile=F, timeline:outfile=F for a trace, or pprof:outfile=F (stdout).",
    ),
)


def _wrong_regexes(options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield option, pattern and what is wrong for each regex that is none."""
    for option in TABLE:
        if option.kind is REGEXES:
            for pattern in getattr(options, option.name):
                if pattern != ALL[0] and (why := wrong(pattern)):
                    yield option.name, pattern, why


def _senseless(options: Options) -> Iterator[UsageError]:
    """Yield what is wrong with values of ``options`` that tfprof takes, and makes nothing of."""
    for option in TABLE:
        value = getattr(options, option.name)
        if option.kind is NUMBER and value < option.least:
            yield invalid(option.name, value, f"a whole number from {option.least}")
    for name, pattern, why in _wrong_regexes(options):
        yield invalid(name, pattern, f"not a regular expression: {why}")


def warnings(options: Options) -> list[str]:
    """Return a line for each regex of ``options`` that is none, and so matches nothing."""
    return [f"-{name} '{pattern}' matches nothing: {why}" for name, pattern, why in _wrong_regexes(options)]


def from_texts(texts: Mapping[str, str | None], base: Options | None = None, *, exact: bool = False) -> Options:
    """Build options from texts by option name, None for those not given; these are as in ``base``.

    Raises UsageError on the first bad value; ``exact``: what makes no sense is taken, as by tfprof: numbers that are negative,
    regexes that are none and match nothing, and an empty `output`.
    """
    known = {option.name: getattr(base, option.name) for option in TABLE} if base else {}
    if not exact and texts.get("output") == "":
        raise invalid("output", "", "stdout, none, file:outfile=F, timeline:outfile=F or pprof:outfile=F")
    values = {
        option.name: option.kind.parse(option.name, text)
        for option in TABLE
        if (text := texts.get(option.name)) is not None
    }
    given = frozenset(values) | (base.given if base else frozenset())
    options = Options(**{**known, **values}, given=given)
    if not exact:
        for error in _senseless(options):
            raise error
    return options


def from_dict(given: Mapping[str, Any]) -> Options:
    """Build options from a dict such as ProfileOptionBuilder's `build` returns, with the defaults of TensorFlow's Python.

    These differ from those of Options: lists that are not given are empty. Unknown keys are ignored, and neither orders nor
    columns nor regexes are checked. `dump_to_file`, the old way to say `output`, wins over it. Raises UsageError on a value of the wrong
    type, and on a bad `output`.
    """
    if not isinstance(given, Mapping):
        raise UsageError(
            f"options are a dict, as ProfileOptionBuilder().build() returns it, not {type(given).__name__}"
        )
    values = {
        option.name: option.kind.take(option.name, given[option.name])
        if option.name in given
        else option.kind.python_default
        for option in TABLE
        if option.name in given or option.kind.python_default is not None
    }
    outfile = text_of("dump_to_file", given.get("dump_to_file", ""))
    if outfile:
        values["output"] = Output(FILE, outfile)
    return Options(**values)  # type: ignore[arg-type]
