"""The table of the TF profiler's options for views: names, defaults and help."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from ..errors import UsageError
from .matcher import ALL, regex_error
from .nodes import Stats
from .option_values import (
    BOOLEAN,
    BYTES,
    COUNT,
    FILE,
    MICROS,
    NUMBER,
    OCCURRENCE,
    ORDER,
    ORDERS,
    OUTPUT,
    REGEXES,
    SELECT,
    SELECTS,
    SPELLINGS,
    OutputChoice,
    Share,
    ValueType,
    invalid,
    output_help,
    text_of,
)
from .parity import DEFAULT, Parity

#: Counters by which rows can be sorted: means over the steps, and the parameters.
_COUNTERS: Final = (
    "micros",
    "accelerator_micros",
    "cpu_micros",
    "float_ops",
    "bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
    "params",
)
#: Minima, each with the counter that it limits.
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
#: Minima of times, in µs.
TIME_MINIMA: Final = ("min_micros", "min_accelerator_micros", "min_cpu_micros")
#: What the op view can split an op type by, in tfprof's own layout.
STEP, LINE, SHAPE = "step", "line", "shape"
BY: Final = (STEP, "scope", LINE, "layer", "device", SHAPE)
_DEFAULT_SELECT: Final = frozenset({"micros"})
_STDOUT: Final = OutputChoice()


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a view; an empty list of regexes matches nothing, `('.*',)` everything.

    `explicit`: names of the options that were given, even if with their default values. The TF
    profiler lacks the last two. `top`: number of rows in tfprof's own layout, 0 for all. `by`: a
    word of BY; the op view splits each op type by it, not at all if it is empty.
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
    output: OutputChoice = _STDOUT
    explicit: frozenset[str] = field(default=frozenset(), compare=False)
    top: int = 0
    by: str = ""

    @property
    def minima(self) -> list[tuple[str, int]]:
        """Counters with their minima.

        As in the TF profiler, a minimum of 0 hides a total that wrapped to a negative number.
        """
        return [(counter, getattr(self, option)) for option, counter in MINIMA.items()]


class Option(NamedTuple):
    """One row of the table of options: name, type of its value, and help.

    ``help`` describes the scope and the graph view; ``op`` and ``code`` replace it for those views.
    ``minimum``: the smallest number that makes sense; the TF profiler accepts others.
    """

    name: str
    value_type: ValueType
    metavar: str
    help: str
    op: str = ""
    code: str = ""
    minimum: int = 0

    def help_for(self, view: str) -> str:
        """Return the help of the option for ``view``."""
        return {"op": self.op, "code": self.code}.get(view) or self.help


_ORDER_DEFAULT: Final = " (the first column; name with --exact-tf or a file)."

#: In the order of the table that the TF profiler prints.
TABLE: Final = (
    Option(
        "max_depth",
        NUMBER,
        "N",
        "Show at most this many levels, the root included (all; 10 with --exact-tf or a file).",
        op="Show entries up to this position, counted from 0 (all; 10 with --exact-tf or a file).",
    ),
    Option(
        "min_bytes",
        BYTES,
        "B",
        "Hide entries that, with all below them, requested fewer bytes.",
        op="Hide entries that, with all rows after them, requested fewer bytes.",
    ),
    Option("min_peak_bytes", BYTES, "B", "The same for peak bytes."),
    Option("min_residual_bytes", BYTES, "B", "The same for bytes still held when the op ended."),
    Option("min_output_bytes", BYTES, "B", "The same for bytes of outputs."),
    Option(
        "min_micros",
        MICROS,
        "US",
        "Hide entries that, with all below them, ran for less time.",
        op="Hide entries that, with all rows after them, ran for less time.",
    ),
    Option("min_accelerator_micros", MICROS, "US", "The same for time on accelerators."),
    Option("min_cpu_micros", MICROS, "US", "The same for time on the CPU."),
    Option(
        "min_params",
        COUNT,
        "N",
        "Hide nodes with fewer parameters of their own.",
        op="Hide entries that, with all rows after them, have fewer parameters.",
        code="Hide entries that, with all below them, have fewer parameters.",
    ),
    Option(
        "min_float_ops",
        COUNT,
        "N",
        "Hide nodes with fewer floating-point operations of their own.",
        op="Hide entries that, with all rows after them, have fewer floating-point operations.",
        code="Hide entries that, with all below them, have fewer floating-point operations.",
    ),
    Option(
        "min_occurrence",
        OCCURRENCE,
        "N",
        "Hide nodes that ran less often.",
        op="Hide op types with fewer nodes in the graph.",
        code="No effect in this view.",
    ),
    Option("step", NUMBER, "N", "Show one traced step; -1: the average of each node's traced steps (-1).", minimum=-1),
    Option(
        "order_by",
        ORDER,
        "WHAT",
        "Sort siblings by " + ", ".join(ORDERS[:-1]) + _ORDER_DEFAULT,
        op="Sort by " + ", ".join(ORDERS) + _ORDER_DEFAULT,
        code="Sort siblings by " + ", ".join(ORDERS) + _ORDER_DEFAULT,
    ),
    Option("account_type_regexes", REGEXES, "R,R", "Count nodes with a matching op type, device or label (.*)."),
    Option(
        "start_name_regexes",
        REGEXES,
        "R,R",
        "Show only the topmost entries that match, and everything below them (.*).",
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
        "Show only entries that match; entries below the others move up (.*).",
        op="Show only entries that match (.*).",
    ),
    Option("hide_name_regexes", REGEXES, "R,R", "Hide entries that match."),
    Option(
        "account_displayed_op_only",
        BOOLEAN,
        "BOOL",
        "Totals cover the shown entries only (false).",
        code="No effect in this view.",
    ),
    Option("select", SELECT, "A,B", "Columns: " + ", ".join(SELECTS) + " (time, calls and lines)."),
    Option(
        "output",
        OUTPUT,
        "WHERE",
        output_help("scope"),
        op=output_help("op"),
        code=output_help("code"),
    ),
)


def multiplied(options: Options, factors: Mapping[str, int]) -> Options:
    """Return ``options`` with minima multiplied by ``factors``, by name; shares stay the same."""
    values = {name: getattr(options, name) for name in factors}
    products: dict[str, Any] = {
        name: value if isinstance(value, Share) else value * factors[name] for name, value in values.items()
    }
    return replace(options, **products)


def without_shares(options: Options, total: Stats) -> Options:
    """Return ``options`` with numbers in place of minima that are shares of ``total``."""
    shares = {name: value for name in MINIMA if isinstance(value := getattr(options, name), Share)}
    minima: dict[str, Any] = {name: math.ceil(share * getattr(total, MINIMA[name])) for name, share in shares.items()}
    return replace(options, **minima)


def _invalid_regexes(options: Options) -> Iterator[tuple[str, str, str]]:
    """Yield option, pattern and error for each invalid regex."""
    for option in TABLE:
        if option.value_type is REGEXES:
            for pattern in getattr(options, option.name):
                if pattern != ALL[0] and (error := regex_error(pattern)):
                    yield option.name, pattern, error


def _option_errors(options: Options) -> Iterator[UsageError]:
    """Yield an error for each senseless value in ``options``.

    The TF profiler accepts such values.
    """
    for option in TABLE:
        value = getattr(options, option.name)
        if isinstance(value, int) and value < option.minimum:
            yield invalid(option.name, value, f"a whole number from {option.minimum}")
    for name, pattern, error in _invalid_regexes(options):
        yield invalid(name, pattern, f"not a regular expression: {error}")


def warnings(options: Options) -> list[str]:
    """Return a warning for each invalid regex of ``options``, which matches nothing."""
    return [f"-{name} '{pattern}' matches nothing: {error}" for name, pattern, error in _invalid_regexes(options)]


def from_texts(texts: Mapping[str, str | None], base: Options | None = None, parity: Parity = DEFAULT) -> Options:
    """Build options from strings by option name; options that are None are taken from ``base``.

    Raises UsageError on the first bad value. If ``parity`` does not check options, negative
    numbers, invalid regexes (they match nothing) and an empty `output` are accepted, as in the TF
    profiler.
    """
    base_values = {option.name: getattr(base, option.name) for option in TABLE} if base else {}
    if parity.checks_options and texts.get("output") == "":
        raise invalid("output", "", SPELLINGS)
    values = {
        option.name: option.value_type.from_text(option.name, text)
        for option in TABLE
        if (text := texts.get(option.name)) is not None
    }
    explicit = frozenset(values) | (base.explicit if base else frozenset())
    options = Options(**{**base_values, **values}, explicit=explicit)
    if parity.checks_options:
        for error in _option_errors(options):
            raise error
    return options


def from_dict(python_options: Mapping[str, Any]) -> Options:
    """Build options from the dict of a ProfileOptionBuilder.

    The defaults are those of TensorFlow's Python: unlike in Options, lists are empty by default.
    Unknown keys are ignored; orders, columns and regexes are not checked. `dump_to_file`, the older
    form of `output`, takes precedence over it. Raises UsageError on a value of the wrong type, and
    on a bad `output`.
    """
    if not isinstance(python_options, Mapping):
        raise UsageError(
            f"options are a dict, as ProfileOptionBuilder().build() returns it, not {type(python_options).__name__}"
        )
    values = {
        option.name: option.value_type.from_python(option.name, python_options[option.name])
        if option.name in python_options
        else option.value_type.python_default
        for option in TABLE
        if option.name in python_options or option.value_type.python_default is not None
    }
    outfile = text_of("dump_to_file", python_options.get("dump_to_file", ""))
    if outfile:
        values["output"] = OutputChoice(FILE, outfile)
    return Options(**values)  # type: ignore[arg-type]


def primary_counter(options: Options) -> str:
    """Return the counter by which rows are sorted, and to which shares refer.

    It is that in ``-order_by``, else the first selected one, else the time.
    """
    if "order_by" in options.explicit and options.order_by in _COUNTERS:
        return options.order_by
    return next((name for name in _COUNTERS if name in options.select), "micros")
