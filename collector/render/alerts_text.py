"""Alerts as text: a block for each, with its time, job, sentence and changed ops."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ..numbers import date_and_time, duration
from ..summaries.top import OpChange
from .wrapping import wrapped

_INDENT: Final = "  "
_WIDTH: Final = 100


class AlertBlock(NamedTuple):
    """One alert: its time, the title of the job, the sentence, the slug, the changed ops, a note.

    `found_ns` is the time of its detection (real ns).
    """

    found_ns: int
    job: str
    text: str
    slug: str
    ops: Sequence[OpChange]
    note: str


def lines(blocks: Sequence[AlertBlock], width: int | None) -> Iterator[str]:
    """Yield the lines of all alerts, wrapped at ``width``; None: at _WIDTH."""
    for block in blocks:
        yield f"{date_and_time(block.found_ns)}  {block.job}"
        yield from _wrapped(f"{block.text} [{block.slug}]", width)
        for op in block.ops:
            yield from _wrapped(_op_text(op), width)
        if block.note:
            yield from _wrapped(block.note, width)


def _op_text(op: OpChange) -> str:
    where = f", line {op.line}" if op.line else ""
    before = f"before {duration(op.before_ns)}" if op.before_ns else "did not run before"
    return f"{op.op} on {op.device}: {duration(op.now_ns)} a step, {before}{where}"


def _wrapped(text: str, width: int | None) -> list[str]:
    return wrapped(text, width or _WIDTH, _INDENT * 2, _INDENT)
