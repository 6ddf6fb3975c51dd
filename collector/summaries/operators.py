"""The operators of a step with their time, computation and memory: selected, aggregated, sorted."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..errors import UsageError

Shapes = tuple[tuple[int, ...], ...]
#: Names of columns by which records can be sorted.
ORDERS: Final = ("time", "computation", "memory", "flops", "bandwidth", "in_shapes", "out_shapes", "opr_id")


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: a node with its numbers in one step.

    ``time``: in seconds. ``computation``: floating-point operations; ``memory``: bytes of its
    inputs and outputs; None if unknown. ``device``: short name.
    """

    name: str
    type: str
    id: int
    device: str
    time: float
    computation: float | None
    memory: float | None
    in_shapes: Shapes
    out_shapes: Shapes


@dataclass(frozen=True, slots=True)
class Record:
    """A row of the analysis: one operator, or an aggregate of several.

    ``info``: what names it. ``shapes``: of inputs and outputs; None for an aggregate.
    """

    info: tuple[str, ...]
    time: float
    computation: float | None
    memory: float | None
    in_shapes: Shapes | None = None
    out_shapes: Shapes | None = None
    opr_id: int | None = None

    @property
    def flops(self) -> float | None:
        """Operations per second."""
        return _per_second(self.computation, self.time)

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second."""
        return _per_second(self.memory, self.time)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which operators count; None and empty select all.

    ``types``: any of these op types; ``type_regex`` matches a whole type, ``name_regex`` the
    beginning of a name. Times are in seconds.
    """

    types: Sequence[str] = ()
    type_regex: str | None = None
    name_regex: str | None = None
    min_time: float | None = None
    max_time: float | None = None

    def selected(self, operators: Iterable[Operator]) -> list[Operator]:
        """Return the selected operators; UsageError if a regex is invalid."""
        type_regex, name_regex = _regex(self.type_regex), _regex(self.name_regex)
        return [
            operator
            for operator in operators
            if (not self.types or operator.type in self.types)
            and (type_regex is None or type_regex.fullmatch(operator.type))
            and (name_regex is None or name_regex.match(operator.name))
            and (self.min_time is None or operator.time >= self.min_time)
            and (self.max_time is None or operator.time <= self.max_time)
        ]


def _regex(pattern: str | None) -> re.Pattern[str] | None:
    try:
        return None if pattern is None else re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{pattern!r} is not a regular expression: {error}") from None


def records_of(operators: Iterable[Operator]) -> list[Record]:
    """Return a record of each operator."""
    return [
        Record(
            (operator.name, operator.type, str(operator.id)),
            *(operator.time, operator.computation, operator.memory),
            *(operator.in_shapes, operator.out_shapes, operator.id),
        )
        for operator in operators
    ]


#: Ways to aggregate numbers. A mean divides by the number of all operators, even if some lack the
#: number.
AGGREGATES: Final[Mapping[str, Callable[[Sequence[float], int], float]]] = {
    "max": lambda numbers, _: max(numbers),
    "min": lambda numbers, _: min(numbers),
    "sum": lambda numbers, _: sum(numbers),
    "mean": lambda numbers, count: sum(numbers) / count,
}


def aggregated(operators: Iterable[Operator], aggregate: str, *, by_type: bool) -> list[Record]:
    """Return one record of each type, or of all operators together.

    ``aggregate``: a name in AGGREGATES, for time, computation and memory.
    """
    groups: dict[str, list[Operator]] = {}
    for operator in operators:
        groups.setdefault(operator.type if by_type else "all", []).append(operator)
    return [
        Record(
            (name, str(len(group)), "N/A"),
            AGGREGATES[aggregate]([operator.time for operator in group], len(group)),
            _aggregate(aggregate, [operator.computation for operator in group]),
            _aggregate(aggregate, [operator.memory for operator in group]),
        )
        for name, group in groups.items()
    ]


def in_order(records: Sequence[Record], order: str) -> list[Record]:
    """Return ``records`` sorted: descending by a name in ORDERS, ascending with `+` before it.

    Records without the number come last. UsageError for another name.
    """
    name = order.removeprefix("+")
    if name not in ORDERS:
        raise UsageError(f"--order-by {order!r} is none of {', '.join(ORDERS)}, and none with + before it")
    known = [record for record in records if getattr(record, name) is not None]
    unknown = [record for record in records if getattr(record, name) is None]
    return [*sorted(known, key=lambda record: _key(record, name), reverse=name == order), *unknown]


def _key(record: Record, name: str) -> Any:
    return getattr(record, name)


def _aggregate(name: str, numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return AGGREGATES[name](known, len(numbers)) if known else None


def _per_second(number: float | None, seconds: float) -> float | None:
    return None if number is None or seconds <= 0 else number / seconds
