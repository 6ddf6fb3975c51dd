"""The line and the JSON of each answer to an order."""

from types import SimpleNamespace
from typing import Any

import pytest
from tfprof.collector.documents.orders import order_document
from tfprof.collector.render import order_text
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.summaries.order_results import JobAnswers
from tfprof.formats import orders
from tfprof.formats.orders import Giver, Order, OrderAnswer

ORDER = Order(orders.TRACE, Giver("ann", "node7", 42), steps=3)
INFO = JobInfo(0x7F3A_0000_0000_0000, identity={"name": "bert", "host": "node7"})
JOB: Any = SimpleNamespace(id="7f3a", info=INFO)


@pytest.mark.parametrize(
    ("answer", "line", "obeyed"),
    [
        (OrderAnswer(7, orders.OBEYED, kind="batch", step=1204), "the next 3 steps, from batch step 1,204 on", True),
        (OrderAnswer(7, orders.ENDED, traced=3), "ended after 3 traced steps", True),
        (
            OrderAnswer(7, orders.ENDED, "job-gone", "the job has ended"),
            "ended, the number of traced steps is unknown: the job has ended [job-gone]",
            True,
        ),
        (OrderAnswer(7, orders.REFUSED, "job-gone", "it has ended"), "order refused: it has ended [job-gone]", False),
        (
            OrderAnswer(7, orders.UNANSWERED, "no-answer", "the collector does not answer"),
            "no answer, the order may be applied: the collector does not answer [no-answer]",
            None,
        ),
    ],
)
def test_an_answer_has_a_line_and_a_document(answer: OrderAnswer, line: str, obeyed: bool | None) -> None:
    assert list(order_text.lines(JOB, ORDER, answer, None, 100)) == [f"7f3a bert: {line}"]
    (document,) = order_document("/store", ORDER, [JobAnswers(JOB, (answer,))])["jobs"]
    assert document["obeyed"] is obeyed
    assert document["traced"] == (3 if answer.traced else None)
