"""The answers of jobs to an order."""

from collections.abc import Iterable
from typing import Annotated, Literal, TypedDict

from ...formats import orders
from ...formats.orders import Order
from ..summaries.order_results import JobAnswers, OrderOps
from .fields import fields
from .ops import OpDocument


class OrderOpsDocument(TypedDict):
    """The ops of the steps that an order traced, of their main kind."""

    kind: Annotated[str, "The kind of step."]
    first_step: Annotated[int, "The number of the first traced step."]
    last_step: Annotated[int, "The number of the last traced step."]
    steps: Annotated[int, "The number of traced steps."]
    ops: Annotated[list[OpDocument], "The op types, the longest time first."]


class JobAnswerDocument(TypedDict):
    """What a job did with an order."""

    id: Annotated[str, "The shortest unique start of the id."]
    uid: Annotated[str, "The id of the job."]
    name: Annotated[str, "The name of the job."]
    host: Annotated[str, "The host of the job; empty if it is unknown."]
    obeyed: Annotated[bool | None, "Whether the job applied the order; null without an answer."]
    kind: Annotated[str | None, "The kind of the first step under the order; null if it is unknown."]
    step: Annotated[int | None, "The number of this step; null if it is unknown."]
    slug: Annotated[str | None, "Why the order was refused, or how it ended (docs/errors.md); null otherwise."]
    text: Annotated[str | None, "The same as a sentence; null otherwise."]
    traced: Annotated[int | None, "The number of traced steps; null if it is unknown, or without -o."]
    ops: Annotated[OrderOpsDocument | None, "The ops of these steps; null without any, or without -o."]


class OrderDocument(TypedDict):
    """The answers of jobs to an order."""

    schema: Annotated[Literal["tfprof.order/1"], "The format and its version."]
    store: Annotated[str, "The folder of the store."]
    order: Annotated[str, "The order as text."]
    jobs: Annotated[list[JobAnswerDocument], "The jobs in order of their answers."]


def order_document(store: str, order: Order, jobs: Iterable[JobAnswers]) -> OrderDocument:
    """Return the answers of jobs to an order."""
    return {"schema": "tfprof.order/1", "store": store, "order": str(order), "jobs": list(map(_job, jobs))}


def _job(job_answers: JobAnswers) -> JobAnswerDocument:
    info, first, last = job_answers.job.info, job_answers.answers[0], job_answers.answers[-1]
    has_ended = last.state == orders.ENDED
    return {
        "id": job_answers.job.id,
        "uid": info.hex,
        "name": info.name,
        "host": info.host,
        "obeyed": None if last.state == orders.UNANSWERED else last.state != orders.REFUSED,
        "kind": first.kind or None,
        "step": first.step or None,
        "slug": last.slug or None,
        "text": last.text or None,
        "traced": last.traced if has_ended and not last.slug else None,
        "ops": None if job_answers.ops is None else _ops(job_answers.ops),
    }


def _ops(ops: OrderOps) -> OrderOpsDocument:
    return {
        "kind": ops.kind,
        "first_step": ops.first,
        "last_step": ops.last,
        "steps": ops.steps,
        "ops": [fields(OpDocument, op) for op in ops.ops],
    }
