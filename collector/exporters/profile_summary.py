"""The page summary.md of the format `profile`: the times of the steps and of their ops."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ..numbers import date_and_time, duration, percent, size
from ..store.catalog import integer_of
from ..store.protocols import JobReader
from ..summaries.top import TopOp
from ..tfviews.encoding import valid_utf8

#: Maximum rows of the tables.
_OPS_MAX: Final = 20
_STEPS_MAX: Final = 20
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")
_CELL_MAX: Final = 300


class TracedStep(NamedTuple):
    """A step: name of its kind, number, duration."""

    kind: str
    number: int
    ns: int


class Summary(NamedTuple):
    """The page of one job: its traced steps, and its ops with times per step as in the views."""

    job: JobReader
    steps: Sequence[TracedStep]
    ops: Sequence[TopOp]

    def lines(self) -> Iterator[str]:
        """Yield the page in pieces."""
        info = self.job.info
        identity = info.identity
        yield f"# {_text(info.name or info.hex)}\n\n"
        framework = f"{identity.get('framework') or ''} {identity.get('framework_version') or ''}".strip()
        began = integer_of(identity, "created_real_ns")
        facts = [
            f"job {info.hex}",
            f"on {_text(info.host)}" if info.host else "",
            f"pid {info.pid}" if info.pid else "",
            _text(framework),
            f"began {date_and_time(began)}" if began else "",
        ]
        yield " · ".join(filter(None, facts)) + "\n"
        yield from self._op_lines()
        yield from self._step_lines()
        yield (
            "\n## Files\n\n"
            "- `timeline/`: a timeline of each step, for Perfetto and `chrome://tracing`\n"
            "- `step_stats/`: the executions of each step as TensorFlow's StepStats\n"
            "- `summary.json`: the numbers of this page for each node and step; times in µs, sizes in bytes\n"
        )

    def _op_lines(self) -> Iterator[str]:
        count = len(self.steps)
        steps = "1 traced step" if count == 1 else f"{count:,} traced steps"
        total = duration(sum(op.ns for op in self.ops))
        yield f"\n## Ops\n\n{total} of op time a step, over {steps} (`tfprof op` explains the numbers).\n\n"
        rows = [
            (
                *(_code(op.op), _code(op.device), duration(op.ns), percent(op.share)),
                *(f"{op.calls:,.3g}", size(op.bytes), _code(op.line)),
            )
            for op in self.ops[:_OPS_MAX]
        ]
        yield _table(("op", "device", "time/step", "share", "calls/step", "memory/step", "line"), rows, "llrrrrl")
        rest = self.ops[_OPS_MAX:]
        if rest:
            yield f"\n{len(rest)} more op types take {percent(sum(op.share for op in rest))}.\n"

    def _step_lines(self) -> Iterator[str]:
        yield "\n## Steps\n\n"
        kinds: dict[str, list[int]] = {}
        for kind, _, ns in self.steps:
            kinds.setdefault(kind, []).append(ns)
        rows = [
            (_code(kind), f"{len(times):,}", *map(duration, (_median(times), min(times), max(times))))
            for kind, times in kinds.items()
        ]
        yield _table(("kind", "traced", "median", "min", "max"), rows, "lrrrr")
        last = self.steps[-_STEPS_MAX:]
        title = "The steps" if len(last) == len(self.steps) else f"The last {len(last)} steps"
        yield f"\n{title}:\n\n"
        yield _table(
            ("kind", "step", "time"), [(_code(kind), str(number), duration(ns)) for kind, number, ns in last], "lrr"
        )


def _median(times: Sequence[int]) -> int:
    return sorted(times)[(len(times) - 1) // 2]


def _text(text: str) -> str:
    """Return a text of a job as one line of plain Markdown."""
    return _SPECIAL.sub(r"\\\1", _CONTROL.sub("?", valid_utf8(text))[:_CELL_MAX])


def _code(text: str) -> str:
    """Return a text of a job as a span of code in a table."""
    plain = _CONTROL.sub("?", valid_utf8(text))[:_CELL_MAX].replace("`", "'").replace("|", "\\|")
    return f"`{plain}`" if plain.strip() else ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]], align: str) -> str:
    """Return a Markdown table whose source is also readable; ``align``: l or r for each column."""
    widths = [max(3, *(len(row[at]) for row in (heads, *rows))) for at in range(len(heads))]
    rule = ["-" * width if side == "l" else "-" * (width - 1) + ":" for width, side in zip(widths, align, strict=True)]
    aligned = [
        [
            cell.ljust(width) if side == "l" else cell.rjust(width)
            for cell, width, side in zip(row, widths, align, strict=True)
        ]
        for row in (heads, rule, *rows)
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in aligned)
