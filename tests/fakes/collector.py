"""A collector that only records messages, in a thread; tests can make it answer wrongly."""

import json
import os
import threading
from pathlib import Path

import zmq
from tfprof.commands.daemons import PidFileLock
from tfprof.formats import layout, wire
from tfprof.formats.wire import Head


class FakeCollector:
    """Listens in the instance folder ``instance_dir``.

    It holds the collector's lock, so that the agent starts no real one.
    """

    def __init__(self, instance_dir):
        self.instance_dir = instance_dir
        self.messages = []
        self.records = {}
        self.spans = {}
        self.duplicates = 0
        self.answer = self.ack
        self.greet = self.welcome
        self.lock = PidFileLock(instance_dir, "collector")
        assert self.lock.acquire()
        self._stop = threading.Event()
        self.start()

    def start(self):
        """Start listening, as a new collector with a new id."""
        self.id = os.urandom(8).hex()
        self._opened = set()
        self._stop.clear()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def pause(self):
        """Stop listening, like a dead collector."""
        self._stop.set()
        self._thread.join()

    def close(self):
        self.pause()
        self.lock.release()

    def bodies_of_type(self, kind):
        return [json.loads(body) for head, body in list(self.messages) if head.type == kind]

    def close_bodies(self):
        return {head.uid: json.loads(body) for head, body in list(self.messages) if head.type == wire.CLOSE}

    def welcome(self, _head, _body):
        """Answer a greeting with WELCOME."""
        return [(Head(wire.WELCOME), json.dumps({"collector": self.id, "pid": os.getpid()}).encode())]

    def ack(self, head, body):
        """Store the message and return its ACK, or REOPEN for a job that was not opened.

        Records that arrive twice are counted in ``duplicates``.
        """
        if head.type == wire.OPEN:
            self._opened.add(head.uid)
        elif head.uid and head.uid not in self._opened:
            return [(Head(wire.REOPEN, head.uid), b"")]
        if head.type == wire.RECORDS:
            for seq, text in _records(body):
                self.duplicates += seq in self.records.setdefault(head.uid, {})
                assert self.records[head.uid].setdefault(seq, text) == text
        elif head.type == wire.SPANS:
            for index in range(head.first, head.last + 1):
                at = 16 + (index - head.first) * layout.SPAN_SIZE
                self.spans.setdefault(head.uid, {})[index] = layout.SPAN.unpack_from(body, at)[2]
        return [(Head(wire.ACK, head.uid, head.type, head.first, head.last), b"")]

    def _serve(self):
        context = zmq.Context()
        router = context.socket(zmq.ROUTER)
        path = Path(self.instance_dir, "collector.sock")
        path.unlink(missing_ok=True)
        router.bind(f"ipc://{path}")
        while not self._stop.is_set():
            if not router.poll(20):
                continue
            peer, head_bytes, body = router.recv_multipart()
            head = wire.unpack(head_bytes)
            self.messages.append((head, body))
            answers = (self.greet if head.type == wire.GREETING else self.answer)(head, body)
            for answer_head, answer_body in answers:
                packed_head = answer_head if isinstance(answer_head, bytes) else wire.pack(answer_head)
                router.send_multipart([peer, packed_head, answer_body])
        context.destroy(linger=0)


def _records(body):
    at = 0
    while at < len(body):
        size, _, _, seq = layout.RECORD.unpack_from(body, at)[:4]
        yield seq, body[at + layout.RECORD.size : at + size]
        at += size
