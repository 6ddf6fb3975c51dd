"""A collector daemon as a child of the test, and an agent that resends what is not acked."""

import json
import os
import signal
import subprocess
import sys
import time

import zmq
from fakes.polling import until
from fakes.run_metadata import run_metadata
from fakes.wire_agent import WireAgent
from tfprof.commands import daemons
from tfprof.formats import layout, runtime_dir, wire
from tfprof.formats.wire import Head


class CollectorProcess:
    """The collector of ``store``. As a context manager it kills the daemon at the end."""

    def __init__(self, store, *options):
        self.store = store
        self.instance_dir = runtime_dir.instance_dir(str(store))
        self._command = [sys.executable, "-m", "tfprof.collector", "--store", str(store), *options]
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        if self.process is not None:
            self.kill()

    def start(self):
        self.process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        return self

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def stop(self):
        """Send SIGTERM to the daemon; return its exit status and standard error."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait_end()

    def wait_end(self, timeout_s=30):
        """Wait until the daemon ends; return its exit status and standard error."""
        _, errors = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, errors

    def status(self):
        return daemons.read_status(self.instance_dir, "collector")

    def await_status(self, condition, timeout_s=15):
        """Return the first status that satisfies ``condition``."""

        def matching_status():
            status = self.status()
            return status if status and "rows" in status and condition(status) else None

        return until(matching_status, "a status of the collector", timeout_s)


class StepStream:
    """Sends ``count`` traced steps of one job until all are acked.

    A message has ``steps_per_message`` steps.
    """

    #: Maximum number of messages that are not acked.
    IN_FLIGHT_MAX = 40

    def __init__(self, instance_dir, uid, count, steps_per_message=3):
        self.agent = WireAgent(instance_dir)
        self.uid, self.count, self.steps_per_message = uid, count, steps_per_message
        self.acked = self.sent = 0  # after a stall, a silence or a reopen, `sent` goes back to `acked`
        self._last_sent = 0  # the last step that was ever sent: the collector may have stored it
        self.stalls = []
        self._collector = None
        self._paused_until = self._last_answer = self._last_greeting = 0.0

    def close(self):
        self.agent.close()

    def exchange(self):
        """Send and receive until 2 ms pass without an answer; return the number of acked steps."""
        now = time.monotonic()
        if now > self._last_greeting + 0.2:
            self._last_greeting = now
            self._send(Head(wire.GREETING), json.dumps({"agent": "a", "host": "testhost"}).encode())
        if self._collector and now > self._last_answer + 1:
            self.sent = self.acked
            self._last_answer = now
        while self._collector and now > self._paused_until and self._may_send():
            first = self.sent + 1
            last = min(self.sent + self.steps_per_message, self.count)
            steps = [
                (layout.RUN_METADATA, run_metadata([b"n%d:Add" % (number % 7)])) for number in range(first, last + 1)
            ]
            try:
                self.agent.records(self.uid, steps, first)
            except zmq.Again:  # the queue is full: the collector is slow to start on a loaded machine
                break
            self.sent = last
            self._last_sent = max(self._last_sent, last)
        while answer := self.agent.receive(0.002):
            self._handle(*answer)
        return self.acked

    def run(self, until=None, timeout_s=60):
        """Call `exchange` until ``until`` steps (by default all) are acked."""
        deadline = time.monotonic() + timeout_s
        while self.acked < (until or self.count):
            assert time.monotonic() < deadline, f"{self.acked} of {self.count} acked"
            self.exchange()

    def finish(self):
        """Send nothing new; return the number of sent steps once all of them are acked."""
        self.count = self._last_sent
        self.run()
        return self.count

    def _may_send(self):
        return self.sent < self.count and self.sent - self.acked < self.IN_FLIGHT_MAX * self.steps_per_message

    def _send(self, head, body):
        try:
            self.agent.send(head, body)
        except zmq.Again:
            return

    def _handle(self, head, body):
        self._last_answer = time.monotonic()
        if head.type == wire.WELCOME and body["collector"] != self._collector:
            self._collector = body["collector"]
            self._reopen()
        elif head.type == wire.REOPEN:
            self._reopen()
        elif head.type == wire.STALL:
            self.stalls.append(body["slug"])
            self.sent = self.acked
            self._paused_until = time.monotonic() + 0.2
        elif head.type == wire.ACK and head.about == wire.RECORDS:
            self.acked = max(self.acked, head.last)
            self.sent = max(self.sent, self.acked)

    def _reopen(self):
        self._send(Head(wire.OPEN, self.uid, 0, 0, 1), json.dumps({"name": "stream", "pid": os.getpid()}).encode())
        self.sent = self.acked
