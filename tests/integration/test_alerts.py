"""Alerts of a real collector: it stores them, runs the alert command, and orders a trace."""

import json
import struct
import time

import pytest
from fakes.collector_process import CollectorProcess
from fakes.polling import until
from fakes.wire_agent import WireAgent, span
from tfprof.collector.query.alerts import alerts_of
from tfprof.collector.store.reader import LocalStore
from tfprof.formats import layout, wire
from tfprof.formats.version import WIRE_VERSION
from tfprof.formats.wire import Head

UID = 0x99
STEP_NS = 50_000_000
SECONDS = 40


@pytest.fixture
def daemon(private_store, tmp_path, monkeypatch):
    monkeypatch.setenv("TFPROF_ALERT_COMMAND", f'echo "$TFPROF_ALERT_JOB $TFPROF_ALERT_SLUG" >> {tmp_path}/alerts')
    with CollectorProcess(private_store) as daemon:
        yield daemon


def spans():
    """Return steps of 50 ms for SECONDS; those of the last ten seconds take twice as long."""
    at, end, result = 0, SECONDS * 10**9, []
    while at < end:
        duration_ns = STEP_NS * (2 if at > end - 10 * 10**9 else 1)
        result.append(span(len(result) + 1, kind=layout.TRAIN, start_ns=at, total_ns=duration_ns))
        at += duration_ns
    return result


def send_spans(agent, entries):
    # The detector compares whole seconds: the first slow step must be at the start of a second.
    start_time_ns = (int(time.time()) - SECONDS) * 10**9
    body = struct.pack("<QQ", 0, start_time_ns) + b"".join(layout.SPAN.pack(*entry) for entry in entries)
    agent.send(Head(wire.SPANS, UID, 0, 1, len(entries)), body)


def greet(agent):
    """Greet as an agent of the newest version, which takes orders."""
    body = {"agent": "a1", "host": "testhost", "wire": list(range(1, WIRE_VERSION + 1))}

    def is_answered():
        agent.send(Head(wire.GREETING), json.dumps(body).encode())
        return agent.receive(0.5) is not None

    until(is_answered, "an answer of the collector")


def test_slower_steps_raise_an_alert_run_the_command_and_order_a_trace(daemon, tmp_path):
    daemon.start()
    alert_file = tmp_path / "alerts"
    agent = WireAgent(daemon.instance_dir)
    try:
        greet(agent)
        agent.open(UID, name="train.py", host="testhost")
        send_spans(agent, spans())
        head, order = agent.expect(wire.ORDER, timeout_s=20)
        until(lambda: alert_file.exists() and alert_file.read_text(), "the line of the alert command")
    finally:
        agent.close()
    assert (head.uid, order["action"], order["steps"], order["gives_way"]) == (UID, "trace", 5, True)
    assert alert_file.read_text() == f"{UID:016x} slower\n"
    [alert] = alerts_of([LocalStore(daemon.store).job("train.py")])
    # The step of the change is known to within a second, which has 20 steps.
    assert alert.text.startswith(f"steps are slower from train {alert.alert.step} on")
    assert abs(alert.alert.step - 601) <= 20
    assert (alert.alert.before, alert.alert.now) == (STEP_NS, 2 * STEP_NS)
    assert daemon.stop() == (0, "")
