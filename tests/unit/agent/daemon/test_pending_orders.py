"""Orders of an agent: written once, checked on the job's control page, answered in bounded time.

Tests agent/daemon/detaching.py.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fakes.channel_writer import ChannelWriter
from fakes.polling import until
from tfprof.agent import control, processes
from tfprof.agent.channels import ChannelReader
from tfprof.agent.daemon.pending_orders import REMEMBERED_MAX, PendingOrders
from tfprof.agent.transport.message_queue import Outbox
from tfprof.commands import daemons
from tfprof.formats import layout, orders, wire
from tfprof.formats.errors import TfprofError
from tfprof.formats.orders import Giver, Order, OrderAnswer
from tfprof.formats.version import CHANNEL_VERSION
from tfprof.formats.wire import Head

GIVER = Giver("ann", "node7", 42)
TEN_STEPS = Order(orders.TRACE, GIVER, steps=10)


class Target:
    """The parts of a job that orders use: channel, process, outbox."""

    def __init__(self, version: int = CHANNEL_VERSION) -> None:
        self.page = ChannelWriter(version=version)
        self.channel = ChannelReader(os.dup(self.page.fd))
        self.uid = self.channel.identity.uid
        self.outbox = Outbox(self.channel)
        self.is_running = True
        self.owner: processes.Process | None = None

    def obey(self, kind: int = layout.TRAIN, step: int = 5) -> None:
        """Apply the order as the shim does at a step."""
        self.page.set(order_kind=kind, order_step=step, order_traced=0, policy_seen=self.page.word("policy"))

    def events(self) -> list[tuple[str, str]]:
        waiting = (json.loads(body) for _, body in self.outbox.events._messages)
        return [(event["slug"], event["text"]) for event in waiting]

    def close(self) -> None:
        self.channel.close()
        self.page.close()


class AgentOrders:
    """The orders of an agent with one job and a fake clock.

    ``answers`` has each sent answer, with the number of its order.
    """

    def __init__(self, target: Target, refusal: TfprofError | None = None) -> None:
        self.target = target
        self.jobs: dict[int, Any] = {target.uid: target}
        self.answers: list[tuple[int, OrderAnswer]] = []
        self.orders = PendingOrders(self.jobs, self._send, lambda: refusal)
        self.now = 100.0

    def _send(self, head: Head, body: bytes) -> bool:
        assert (head.type, head.about) == (wire.ANSWER, wire.ORDER)
        self.answers.append((head.last, orders.answer_of(head.uid, json.loads(body))))
        return True

    def give(self, order: Order = TEN_STEPS, number: int = 1, uid: int | None = None) -> None:
        head = Head(wire.ORDER, self.target.uid if uid is None else uid, 0, 0, number)
        self.orders.take(head, order.document(), self.now)

    def check(self, after_s: float = 0.1) -> list[tuple[int, OrderAnswer]]:
        """Check the orders ``after_s`` later; return the new answers."""
        self.now += after_s
        before = len(self.answers)
        self.orders.check(self.now)
        return self.answers[before:]


@pytest.fixture
def target() -> Iterator[Target]:
    new_target = Target()
    yield new_target
    new_target.close()


@pytest.fixture
def agent(target: Target) -> AgentOrders:
    return AgentOrders(target)


def test_an_order_is_obeyed_ends_and_is_stored_with_its_giver(agent: AgentOrders, target: Target) -> None:
    agent.give()
    assert (target.page.word("policy_mode"), target.page.word("policy_count")) == (layout.MODE_ALL, 10)
    assert agent.check() == []
    pending_states = [agent.orders.has_pending]
    target.obey(step=7)
    [(number, answer)] = agent.check()
    assert (number, answer.state, answer.kind, answer.step) == (1, orders.OBEYED, "train", 7)
    assert [*pending_states, agent.orders.has_pending] == [True, False]
    assert agent.check() == []
    target.page.set(order_traced=10, order_over=1)
    [(_, last_answer)] = agent.check()
    assert (last_answer.state, last_answer.traced) == (orders.ENDED, 10)
    assert answer.from_ns == last_answer.from_ns <= last_answer.to_ns
    slugs, texts = zip(*target.events(), strict=True)
    assert slugs == ("order-given", "order-ended")
    assert "of ann on node7 (process 42), the next 10 steps: obeyed from train step 7 on" in texts[0]


def test_the_end_is_answered_once_the_traced_steps_are_stored(agent: AgentOrders, target: Target) -> None:
    agent.give()
    target.obey()
    agent.check()
    target.page.put(b"{}")
    target.page.set(order_over=1)
    assert agent.check() == []
    assert agent.orders.has_unstored_steps
    target.outbox.records.acked, target.outbox.is_spooled = target.page.word("head"), True
    assert agent.check() == []
    target.outbox.is_spooled = False
    assert [answer.state for _, answer in agent.check()] == [orders.ENDED]


def test_a_repeated_order_is_written_once_and_answered_again(agent: AgentOrders, target: Target) -> None:
    agent.give()
    agent.give()
    assert target.page.word("policy") == 1
    target.obey()
    agent.check()
    agent.give()
    assert [answer.state for _, answer in agent.answers] == [orders.OBEYED, orders.OBEYED]
    assert target.page.word("policy") == 1


@pytest.mark.parametrize("action", [orders.TRACE, orders.END, orders.DETACH])
def test_an_agent_that_takes_no_orders_writes_none(target: Target, action: str) -> None:
    agent = AgentOrders(target, TfprofError("not here", "remote-orders"))
    agent.give(Order(action, GIVER))
    agent.give(Order(action, GIVER))
    assert agent.answers == [(1, OrderAnswer(target.uid, orders.REFUSED, "remote-orders", "not here"))] * 2
    assert target.page.word("policy") == 0
    assert agent.check() == []


def test_the_next_agent_continues_an_order_on_the_page(agent: AgentOrders, target: Target) -> None:
    agent.give()
    successor = AgentOrders(target)
    successor.give()
    assert target.page.word("policy") == 1
    target.obey()
    assert [answer.state for _, answer in successor.check()] == [orders.OBEYED]


def test_without_steps_an_order_is_refused_in_time_and_withdrawn(agent: AgentOrders, target: Target) -> None:
    agent.give(TEN_STEPS._replace(patience_s=3.0))
    assert agent.check(2.9) == []
    [(_, answer)] = agent.check(0.2)
    assert (answer.state, answer.slug) == (orders.REFUSED, "no-step-began")
    assert "one long step" in answer.text
    assert target.page.word("policy") == 2
    assert 0 < target.page.word("policy_end_ns") < time.monotonic_ns()


def test_an_order_that_is_applied_while_it_is_withdrawn_is_not_refused(
    agent: AgentOrders, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.give(TEN_STEPS._replace(patience_s=3.0))
    withdraw = control.withdraw

    def withdraw_late(channel: ChannelReader) -> int:
        target.obey()
        return withdraw(channel)

    monkeypatch.setattr(control, "withdraw", withdraw_late)
    assert agent.check(3.1) == []
    target.obey(step=9)
    [(_, answer)] = agent.check()
    assert (answer.state, answer.step) == (orders.OBEYED, 9)
    assert (target.page.word("policy_mode"), target.page.word("policy_count")) == (layout.MODE_ALL, 10)
    assert [slug for slug, _ in target.events()] == ["order-given"]


def test_an_order_that_the_job_obeyed_before_its_end_is_not_refused_by_the_next_agent(
    agent: AgentOrders, target: Target
) -> None:
    agent.give()
    target.obey()
    target.is_running = False
    successor = AgentOrders(target)
    successor.give()
    assert [answer.state for _, answer in successor.check() + successor.check()] == [orders.OBEYED, orders.ENDED]


def test_pending_orders_are_remembered_however_many_there_are(agent: AgentOrders, target: Target) -> None:
    targets = [Target() for _ in range(REMEMBERED_MAX)]
    for number, other in enumerate(targets, 2):
        agent.jobs[other.uid] = other
        agent.give(number=number, uid=other.uid)
    agent.give(number=1)
    assert agent.check() == []
    for other in (*targets, target):
        other.obey()
    agent.check()
    agent.check()
    assert sorted(number for number, _ in agent.answers) == list(range(1, len(targets) + 2))
    for other in targets:
        other.close()


def test_a_stopped_process_is_reported_before_the_time_limit(agent: AgentOrders, target: Target) -> None:
    process = subprocess.Popen(["sleep", "100"])
    try:
        target.owner = processes.process(process.pid)
        agent.give()
        assert agent.check() == []
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        assert agent.check() == []
        assert [answer.slug for _, answer in agent.check(2.5)] == ["job-stopped"]
    finally:
        process.kill()
        process.wait()


def test_orders_are_refused_once_their_job_has_ended(agent: AgentOrders, target: Target) -> None:
    agent.give()
    target.is_running = False
    assert [answer.slug for _, answer in agent.check()] == ["job-gone"]
    agent.give(number=2)
    agent.give(number=3, uid=12345)
    assert [(number, answer.slug) for number, answer in agent.answers[1:]] == [(2, "job-gone"), (3, "job-gone")]


def test_the_end_of_a_job_ends_its_order(agent: AgentOrders, target: Target) -> None:
    agent.give()
    target.obey()
    agent.check()
    target.page.set(order_traced=4)
    target.is_running = False
    assert [(answer.state, answer.traced) for _, answer in agent.check()] == [(orders.ENDED, 4)]


def test_a_dropped_job_is_no_longer_read(agent: AgentOrders, target: Target) -> None:
    agent.give()
    del agent.jobs[target.uid]
    target.channel.close()
    assert [answer.slug for _, answer in agent.check()] == ["job-gone"]
    target.channel = ChannelReader(os.dup(target.page.fd))


def test_of_two_orders_before_a_step_the_last_is_obeyed(agent: AgentOrders, target: Target) -> None:
    agent.give(number=1)
    agent.give(TEN_STEPS._replace(steps=3), number=2)
    target.obey()
    answers = dict(agent.check())
    assert answers[1].slug == "order-replaced"
    assert answers[2].state == orders.OBEYED


def test_an_order_replaces_the_order_in_force(agent: AgentOrders, target: Target) -> None:
    agent.give(number=1)
    target.obey()
    agent.check()
    agent.give(Order(orders.TRACE, GIVER, "off"), number=2)
    target.obey()
    answers = dict(agent.check() + agent.check())
    assert {number: answer.state for number, answer in answers.items()} == {1: orders.ENDED, 2: orders.OBEYED}
    assert (answers[1].slug, answers[1].text) == ("order-replaced", "another order was given")
    assert any(text.endswith(": ended, another order was given") for _, text in target.events())


def test_the_refusal_of_an_order_names_the_order_that_ends_with_its_withdrawal(
    agent: AgentOrders, target: Target
) -> None:
    agent.give(number=1)
    target.obey()
    agent.check()
    agent.give(number=2)
    answers = dict(agent.check(60.0))
    assert (answers[2].slug, answers[2].text.endswith("; the order in force ends, too")) == ("no-step-began", True)
    target.obey()
    assert [(number, answer.state) for number, answer in agent.check()] == [(1, orders.ENDED)]


@pytest.fixture
def python() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_a_job_without_a_step_is_detached_by_an_injection_or_the_refusal_says_why_not(
    agent: AgentOrders, target: Target, python: "subprocess.Popen[str]"
) -> None:
    target.owner = processes.process(python.pid)
    python.kill()
    python.wait()
    agent.give(Order(orders.DETACH, GIVER))
    progress = agent.orders._orders[1]
    assert agent.check(0.5) == []
    assert progress.detaching is not None
    assert progress.detaching._helper is None  # a step may still begin
    agent.check(0.6)
    until(lambda: agent.check(0.0) or progress.detaching.error, "the answer of the helper")
    [(_, answer)] = agent.check(10.0)
    assert (answer.state, answer.slug) == (orders.REFUSED, "no-step-began")
    assert answer.text.endswith(f"; without a step: process {python.pid} is gone")


def test_a_process_that_this_launch_did_not_arm_is_asked_once(
    agent: AgentOrders, target: Target, python: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    program = 'print(\'{"method": "ptrace", "stopped_ns": 1, "shim": {"armed": false, "before": false}}\')'
    monkeypatch.setattr(daemons, "isolated_command", lambda *_: [sys.executable, "-c", program])
    target.owner = processes.process(python.pid)
    agent.give(Order(orders.DETACH, GIVER))
    progress = agent.orders._orders[1]
    agent.check(1.1)
    assert progress.detaching is not None
    until(lambda: agent.check(0.0) or progress.detaching.error, "the answer of the helper")
    assert agent.check(0.0) == []
    [(_, answer)] = agent.check(10.0)
    assert answer.text.endswith("; without a step: the process is not profiled by this launch")


def test_a_step_within_a_second_detaches_without_an_injection(agent: AgentOrders, target: Target) -> None:
    agent.give(Order(orders.DETACH, GIVER))
    agent.check(0.5)
    target.page.set(detached=1)
    [(_, answer)] = agent.check(0.6)
    assert (answer.state, answer.kind, answer.step) == (orders.OBEYED, "", 0)


def test_detach_is_obeyed_once(agent: AgentOrders, target: Target) -> None:
    agent.give(Order(orders.DETACH, GIVER))
    assert target.page.word("detach") == 1
    target.obey()
    target.page.set(detached=1)
    assert [answer.state for _, answer in agent.check()] == [orders.OBEYED]
    agent.give(number=2)
    assert agent.answers[-1][1].slug == "job-detached"


def test_a_channel_of_another_version_gets_no_order() -> None:
    old_target = Target(version=1)
    agent = AgentOrders(old_target)
    agent.give()
    [(_, answer)] = agent.answers
    assert answer.slug == "unknown-version"
    assert "version 1" in answer.text
    assert f"speaks {CHANNEL_VERSION}" in answer.text
    assert old_target.page.word("policy") == 0
    old_target.close()


@pytest.mark.parametrize(
    "body", [{}, {**TEN_STEPS.document(), "trace": "x"}, {**TEN_STEPS.document(), "steps": "many"}]
)
def test_an_invalid_order_is_refused(agent: AgentOrders, target: Target, body: dict[str, object]) -> None:
    agent.orders.take(Head(wire.ORDER, target.uid, 0, 0, 9), body, agent.now)
    assert [(number, answer.state) for number, answer in agent.answers] == [(9, orders.REFUSED)]
    assert target.page.word("policy") == 0


def test_more_ranges_than_a_page_holds_are_refused(agent: AgentOrders) -> None:
    agent.give(TEN_STEPS._replace(trace="steps=" + ",".join(str(2 * number) for number in range(1, 18))))
    assert "16 ranges" in agent.answers[0][1].text


def test_impossible_words_of_a_job_do_no_harm(agent: AgentOrders, target: Target) -> None:
    agent.give()
    target.page.set(order_kind=2**64 - 1, order_step=2**64 - 1, order_traced=2**64 - 1, policy_seen=1)
    assert [answer.state for _, answer in agent.check()] == [orders.OBEYED]
    target.page.set(order_over=2**64 - 1)
    assert [answer.state for _, answer in agent.check()] == [orders.ENDED]
