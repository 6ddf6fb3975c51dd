"""The client of orders: each job has one answer, whatever the collector sends and however late."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq
from tfprof.collector import client
from tfprof.collector.client import Client
from tfprof.collector.store.catalog import JobInfo
from tfprof.collector.summaries.order_results import OrderTarget
from tfprof.formats import orders, wire
from tfprof.formats.orders import Giver, Order, OrderAnswer
from tfprof.formats.wire import Head

UID = 0xABC
ORDER = Order(orders.TRACE, Giver("ann", "node7", 42), steps=3, patience_s=0.5)
#: What a collector answers to the order that arrives as number N of its kind, N from 0 on.
Answers = Callable[[int], list[OrderAnswer]]


class Collector:
    """A socket that answers orders with the ``answers`` of the test."""

    def __init__(self, folder: Path) -> None:
        self.address = f"ipc://{folder}/socket"
        self.patience_s: list[float] = []
        self.answers: Answers = lambda _: []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
            router.bind(self.address)
            while not self._is_over.is_set():
                if router.poll(20):
                    self._answer(router)

    def _answer(self, router: "zmq.Socket[bytes]") -> None:
        connection, head, body = router.recv_multipart()
        number = wire.unpack(head).last
        for answer in self.answers(len(self.patience_s)):
            answer_head = wire.pack(Head(wire.ANSWER, UID, wire.ORDER, 0, number))
            router.send_multipart([connection, answer_head, json.dumps(answer.document()).encode()])
        self.patience_s.append(json.loads(body)["patience_s"])

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()


@pytest.fixture
def collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setattr(client, "RESEND_S", 0.1)
    monkeypatch.setattr(client, "TRANSPORT_S", 0.5)
    monkeypatch.setattr(client, "ANSWER_S", 0.4)
    new_collector = Collector(tmp_path)
    yield new_collector
    new_collector.close()


def given(collector: Collector, *, to_the_end: bool = False) -> list[OrderAnswer]:
    with Client(collector.address) as new_client:
        return list(new_client.give([UID], ORDER, to_the_end=to_the_end))


OBEYED = OrderAnswer(UID, orders.OBEYED, kind="train", step=5, from_ns=100)
ENDED = OrderAnswer(UID, orders.ENDED, traced=3, from_ns=300, to_ns=400)
GONE = OrderAnswer(UID, orders.REFUSED, "job-gone", "the job has ended")
NO_AGENT = OrderAnswer(UID, orders.REFUSED, "no-agent", "none")


def test_an_order_that_was_obeyed_is_never_called_refused(collector: Collector) -> None:
    collector.answers = lambda number: [OBEYED if number < 2 else GONE]
    first, last = given(collector, to_the_end=True)
    assert first == OBEYED
    assert (last.state, last.slug, last.from_ns) == (orders.ENDED, "job-gone", 100)
    assert last.to_ns > 100


def test_the_end_has_the_time_of_the_first_answer_even_from_another_agent(collector: Collector) -> None:
    collector.answers = lambda number: [[OBEYED], [NO_AGENT], [OBEYED._replace(from_ns=300), ENDED]][min(number, 2)]
    assert given(collector, to_the_end=True) == [OBEYED, ENDED._replace(from_ns=100)]


def test_without_an_answer_nobody_knows_whether_the_order_is_applied(collector: Collector) -> None:
    collector.answers = lambda number: [NO_AGENT] if number < 2 else []
    [answer] = given(collector)
    assert (answer.state, answer.slug) == (orders.UNANSWERED, "no-answer")


def test_an_order_that_an_agent_may_have_got_before_it_left_is_not_called_refused(collector: Collector) -> None:
    collector.answers = lambda number: [] if number < 1 else [NO_AGENT]
    assert given(collector) == [NO_AGENT._replace(state=orders.UNANSWERED)]


def test_without_an_agent_the_order_is_refused(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RESEND_S", 10.0)
    collector.answers = lambda _: [NO_AGENT]
    assert given(collector) == [NO_AGENT]


@pytest.mark.parametrize(("state", "slug"), [("exited", "job-gone"), ("detached", "job-detached")])
def test_a_job_that_has_ended_or_is_detached_gets_no_order(state: str, slug: str) -> None:
    target = OrderTarget(JobInfo(UID, state, {"pid": 4711}), "7000", may_run=False)
    [(_, answer)] = client.give("/no/store", [target], ORDER)
    assert (answer.state, answer.slug) == (orders.REFUSED, slug)
    assert ("tfprof attach 4711" in answer.text) == (state == "detached")


def test_no_job_has_time_left_to_apply_an_order_after_the_client_has_given_up(collector: Collector) -> None:
    given(collector)
    assert collector.patience_s[0] == ORDER.patience_s
    assert collector.patience_s == sorted(collector.patience_s, reverse=True)
    assert 0 < collector.patience_s[-1] < 0.2
