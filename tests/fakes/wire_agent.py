"""An agent for tests of the collector, which sends and receives single messages of docs/wire.md."""

import json
import struct
import time

import zmq
from tfprof.formats import layout, wire
from tfprof.formats.addresses import local_endpoint
from tfprof.formats.wire import Head


class WireAgent:
    """Connects to the collector whose socket is in the folder ``instance_dir``.

    With ``url`` it connects there, and with ``key``, a NodeKey, the connection is encrypted.
    ``name``: the connection's name, by default one that the collector makes.
    """

    def __init__(self, instance_dir, agent="a1", host="testhost", url=None, key=None, name=None):
        self.agent, self.host = agent, host
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.reconnect_ivl = 20
        if name is not None:
            self._socket.routing_id = name
        if key is not None:
            self._socket.curve_publickey = key.pair.public.encode()
            self._socket.curve_secretkey = key.pair.secret.encode()
            self._socket.curve_serverkey = key.collector.encode()
        self._socket.connect(url or local_endpoint(str(instance_dir)).url)

    def close(self):
        self._socket.close()
        self._context.term()

    def send(self, head, body=b""):
        """Send one message. Raise zmq.Again when the queue is full."""
        self._socket.send_multipart([wire.pack(head), body], zmq.NOBLOCK)

    def send_raw(self, *frames):
        self._socket.send_multipart(list(frames))

    def receive(self, timeout_s=10):
        """Return the next answer as (head, JSON or None), or None after ``timeout_s``."""
        if not self._socket.poll(timeout_s * 1000):
            return None
        head, body = self._socket.recv_multipart()
        return wire.unpack(head), json.loads(body) if body else None

    def expect(self, kind, about=None, timeout_s=10):
        """Return the next answer of type ``kind``, and drop earlier answers.

        With ``about``, the answer must be about messages of this type.
        """
        deadline = time.monotonic() + timeout_s
        while (remaining_s := deadline - time.monotonic()) > 0:
            answer = self.receive(remaining_s)
            if answer and answer[0].type == kind and about in (None, answer[0].about):
                return answer
        raise AssertionError(f"no answer of type {kind} about {about}")

    def greet(self, timeout_s=10):
        """Greet until a collector answers; return the body of its WELCOME."""
        deadline = time.monotonic() + timeout_s
        body = json.dumps({"agent": self.agent, "host": self.host, "wire": list(wire.SUPPORTED_VERSIONS)}).encode()
        while time.monotonic() < deadline:
            self.send(Head(wire.GREETING), body)
            answer = self.receive(0.5)
            while answer and answer[0].type != wire.WELCOME:
                answer = self.receive(0.5)
            if answer:
                return answer[1]
        raise AssertionError("no collector answers")

    def open(self, uid, generation=1, **identity):
        self.send(Head(wire.OPEN, uid, 0, 0, generation), json.dumps(identity).encode())
        return self.expect(wire.ACK, wire.OPEN)

    def records(self, uid, records, first=1):
        """Send ``records``, tuples (kind, body), with numbers from ``first`` on."""
        body = b"".join(record(seq, *kind_and_body) for seq, kind_and_body in enumerate(records, first))
        self.send(Head(wire.RECORDS, uid, 0, first, first + len(records) - 1), body)

    def spans(self, uid, spans, first=1, offset=0):
        body = struct.pack("<QQ", 10**9, 10**9 + offset) + b"".join(layout.SPAN.pack(*span) for span in spans)
        self.send(Head(wire.SPANS, uid, 0, first, first + len(spans) - 1), body)

    def samples(self, number, t_ns, jobs, host=None):
        body = {"t_ns": t_ns, "host": host or {}, "jobs": {f"{uid:016x}": values for uid, values in jobs.items()}}
        self.send(Head(wire.SAMPLES, 0, 0, number, number), json.dumps(body).encode())

    def finish(self, uid, state="exited", **values):
        self.send(Head(wire.CLOSE, uid, 0, 0, 1), json.dumps({"state": state, **values}).encode())


def record(seq, kind, body, *, step=1, start_ns=1_000_000, duration_ns=500, thread=7, key=0, flags=layout.RUN):
    header = layout.RECORD.pack(
        layout.RECORD.size + len(body), kind, flags, seq, step, start_ns, start_ns, duration_ns, thread, key
    )
    return header + body


def span(ordinal, *, kind=layout.RUN, start_ns=1_000, total_ns=100, flags=0, count=1, key=0, thread=7, parent=0):
    return (start_ns, total_ns, ordinal, count, kind, flags, key, thread, total_ns, total_ns, parent)
