"""The answer to an order as text: a line, and the ops of the traced steps."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from ...formats import orders
from ...formats.orders import Order, OrderAnswer
from ..numbers import count
from ..summaries.kinds import kind_name
from ..summaries.order_results import OrderOps, OrderTarget
from ..text import clean
from .report_text import ops_table


def lines(job: OrderTarget, order: Order, answer: OrderAnswer, ops: OrderOps | None, width: int) -> Iterator[str]:
    """Yield a line for ``answer``, and a table of ``ops``.

    ``ops``: the ops of the traced steps, known after the end of ``order``; None for no table.
    """
    title = clean(f"{job.id} {job.info.name}".rstrip())
    if answer.state == orders.REFUSED:
        yield f"{title}: order refused: {clean(answer.text)} [{clean(answer.slug)}]"
    elif answer.state == orders.OBEYED:
        yield f"{title}: {order}, from {answer.kind} step {count(answer.step)} on"
    else:
        yield f"{title}: ended after {count(answer.traced)} traced {'step' if answer.traced == 1 else 'steps'}"
    if ops is not None:
        yield f"{title}: {_steps(ops)}"
        yield from ops_table(ops.ops, width)


def _steps(ops: OrderOps) -> str:
    return f"ops of {count(ops.steps)} traced {kind_name(ops.kind)} steps, {count(ops.first)} to {count(ops.last)}"


def document(
    job: OrderTarget, answer: OrderAnswer, previous_document: Mapping[str, Any] | None, ops: OrderOps | None
) -> dict[str, Any]:
    """Return the JSON object of ``job`` after ``answer``.

    ``previous_document``: the object after the previous answer, None for the first answer.
    """
    info = job.info
    values: dict[str, Any] = {
        "id": job.id,
        "uid": info.hex,
        "name": info.name,
        "host": str(info.identity.get("host") or ""),
    }
    values |= {"obeyed": answer.state != orders.REFUSED, "slug": answer.slug or None, "text": answer.text or None}
    if answer.state == orders.ENDED:
        values |= {"traced": answer.traced, "ops": None if ops is None else _ops(ops)}
        return {**(previous_document or {"kind": None, "step": None}), **values}
    return {**values, "kind": answer.kind or None, "step": answer.step or None}


def _ops(ops: OrderOps) -> dict[str, Any]:
    return {
        "kind": kind_name(ops.kind),
        "first_step": ops.first,
        "last_step": ops.last,
        "steps": ops.steps,
        "ops": [asdict(op) for op in ops.ops],
    }
