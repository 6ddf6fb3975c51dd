"""`tfprof analyze`: the operators of a step with computation, memory and bandwidth."""

import math
from collections.abc import Sequence
from typing import Any, Final

import click

from ..collector.errors import StoreError, UsageError
from ..collector.query.explanations import untraced_reason
from ..collector.query.node_times import operators
from ..collector.render import operators_text
from ..collector.summaries.operators import AGGREGATES, ORDERS, Filter, aggregated, in_order, records_of
from ..commands.streams import note, print_lines
from .command import jobs_argument, pid_option, store_option
from .selection_options import device_option, hosts_option, kind_option, selection_from, steps_option
from .values import NON_EMPTY, WHOLE

#: Default of -t.
_TOP: Final = 3


class _Seconds(click.ParamType):  # type: ignore[type-arg]  # older releases of click have no argument there
    """A time in seconds, such as 1e-4."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds; BadParameter if ``value`` is no number."""
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if math.isnan(number) or (isinstance(value, str) and not value.isascii()) or len(str(value)) > 40:
            self.fail(f"{value!r} is not a number of seconds, such as 1e-4", param, ctx)
        return number


@click.command()
@jobs_argument
@hosts_option
@pid_option
@kind_option("the main kind")
@steps_option("traced steps")
@device_option
@click.option("-t", "--top", metavar="N", type=WHOLE, default=_TOP, help=f"The first N operators ({_TOP}); 0 for all.")
@click.option("--type", "types", metavar="TYPE", type=NON_EMPTY, multiple=True, help="Only this op type; repeatable.")
@click.option("--type-regex", metavar="REGEX", type=NON_EMPTY, help="Only op types that REGEX matches as a whole.")
@click.option("--opr-name", metavar="REGEX", type=NON_EMPTY, help="Only nodes whose name begins with a match of REGEX.")
@click.option("--min-time", metavar="S", type=_Seconds(), help="Only operators that take S seconds a step or more.")
@click.option("--max-time", metavar="S", type=_Seconds(), help="Only operators that take S seconds a step or less.")
@click.option("--aggregate", type=click.Choice(list(AGGREGATES)), help="One row for all, or with --aggregate-by more.")
@click.option("--aggregate-by", type=click.Choice(["type"]), help="With --aggregate: one row for each op type.")
@click.option(
    "--order-by", metavar="COLUMN", type=NON_EMPTY, default=ORDERS[0], help=f"{', '.join(ORDERS)}; +COLUMN: ascending."
)
@click.option("--dump-only-opr", is_flag=True, help="Print only name, type and number of each operator.")
@store_option
def analyze(
    jobs: Sequence[str],
    store: str,
    hosts: Sequence[str],
    pids: Sequence[int],
    kinds: str | None,
    steps: tuple[int, int] | None,
    device: str | None,
    top: int,
    types: Sequence[str],
    type_regex: str | None,
    opr_name: str | None,
    min_time: float | None,
    max_time: float | None,
    aggregate: str | None,
    aggregate_by: str | None,
    order_by: str,
    dump_only_opr: bool,
) -> None:
    """Print the operators of JOB: time, computation, memory, bandwidth, shapes; per step.

    Options and columns are those of MegEngine's profile_analyze.
    """
    if aggregate_by is not None and aggregate is None:
        raise UsageError(f"--aggregate-by needs --aggregate: {', '.join(AGGREGATES)}")
    selection = selection_from(jobs, store, hosts=hosts, pids=pids, kinds=kinds, steps=steps, device=device)
    every = operators(selection)
    if not every:
        raise StoreError(untraced_reason(selection.jobs[0]), slug="no-data")
    selected = Filter(types, type_regex, opr_name, min_time, max_time).selected(every)
    rows = (
        records_of(selected) if aggregate is None else aggregated(selected, aggregate, by_type=aggregate_by is not None)
    )
    shown = in_order(rows, order_by)[: top or None]
    if not shown:
        note(f"none of the {len(every)} operators is selected")
    elif dump_only_opr:
        print_lines(operators_text.plain(shown))
    else:
        total = sum(operator.time for operator in every)
        print_lines([*operators_text.summary(total), "", *operators_text.lines(shown, total)])
