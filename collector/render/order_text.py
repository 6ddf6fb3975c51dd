"""The answer to an order as text: a line, and the ops of the traced steps."""

from collections.abc import Iterator
from typing import Final

from ...formats import orders
from ...formats.orders import Order, OrderAnswer
from ..numbers import count, counted
from ..summaries.order_results import OrderOps, OrderTarget
from .report_text import ops_table


def lines(job: OrderTarget, order: Order, answer: OrderAnswer, ops: OrderOps | None, width: int) -> Iterator[str]:
    """Yield a line for ``answer``, and a table of ``ops``.

    ``ops``: the ops of the traced steps, known after the end of ``order``; None for no table.
    """
    title = f"{job.id} {job.info.name}".rstrip()
    if answer.state == orders.OBEYED:
        first_step = f", from {answer.kind} step {count(answer.step)} on" if answer.kind else ""
        yield f"{title}: {order}{first_step}"
    elif answer.state == orders.ENDED and not answer.slug:
        yield f"{title}: ended after {count(answer.traced)} traced {'step' if answer.traced == 1 else 'steps'}"
    else:
        yield f"{title}: {_PROBLEMS[answer.state]}: {answer.text} [{answer.slug}]"
    if ops is not None:
        yield f"{title}: {_steps(ops)}"
        yield from ops_table(ops.ops, width)


#: State of an answer -> the beginning of its line, if it has a slug.
_PROBLEMS: Final = {
    orders.REFUSED: "order refused",
    orders.UNANSWERED: "no answer, the order may be applied",
    orders.ENDED: "ended, the number of traced steps is unknown",
}


def no_ops_text(job: OrderTarget, answer: OrderAnswer) -> str:
    """Return the reason why no ops are printed after ``answer``, the end of an order."""
    reason = "the traced steps have no ops" if answer.traced or answer.slug else "no step was traced"
    return f"{job.id} {job.info.name}".rstrip() + f": {reason}"


def _steps(ops: OrderOps) -> str:
    steps = counted(ops.steps, f"traced {ops.kind} step")
    last = "" if ops.first == ops.last else f" to {count(ops.last)}"
    return f"ops of {steps}, {count(ops.first)}{last}"
