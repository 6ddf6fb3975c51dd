"""Random messages of a job: valid ones, and others with corrupt bits, words, texts and lengths."""

import json
import random
import struct
from pathlib import Path

from fakes.run_metadata import run_metadata
from fakes.wire_agent import record, span
from tfprof.formats import layout, wire
from tfprof.formats.wire import Head

DATA = Path(__file__).parents[1] / "contract" / "data"
#: Limits of integer types, and their neighbors.
EDGES = (0, 1, 2, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**63 + 100, 2**64 - 2, 2**64 - 1)
#: Replacements for a value in JSON.
JSON_EDGES = (
    b"true",
    b"null",
    b"-1",
    b"1e999",
    b"NaN",
    b"1" * 30,
    b"1" * 5000,
    b'"\\ud800"',
    b'""',
    b"[]",
    b"{}",
    b"[" * 400 + b"]" * 400,
    b"[" * 60 + b"]" * 60,
)


def bodies():
    """Yield (kind, body) of valid records of every kind."""
    frames = {"files": ["x.py", "y.py"], "functions": ["f"], "frames": [[0, 3, 0], [1, 4, 0]], "stacks": [[0, 1], [1]]}
    frames |= {"nodes": {"a": 0, "b": 1}, "starts": [2, 3], "variables": {"w/resource": [3, 4], "b": None}}
    yield layout.RUN_METADATA, run_metadata([b"a:Add", b"b:Mul"])
    yield layout.FRAMES, json.dumps(frames).encode()
    yield layout.REFUSED, json.dumps({"slug": "fake", "text": "no", "count": 3, "t_ns": 5}).encode()
    for path in sorted(DATA.iterdir()):
        kind = {".run_metadata": layout.RUN_METADATA, ".xspace": layout.XSPACE, ".graph": layout.GRAPH}.get(path.suffix)
        if kind is not None:
            yield kind, path.read_bytes()


BODIES = list(bodies())
DOCUMENTS = {
    wire.OPEN: {"name": "evil.py", "pid": 7, "host": "h", "tags": {"a": "b"}, "created_real_ns": 5, "launch": "12"},
    wire.COUNTERS: {"records": 3, "traced": 1, "self_ns": 5, "counts": {"run": 3}},
    wire.EVENT: {"slug": "policy", "text": "all", "count": 1, "t_ns": 5},
    wire.CLOSE: {"state": "exited", "status": 0, "signal": None, "t_ns": 5, "records": 3},
    wire.SAMPLES: {"t_ns": 5, "host": {"cpus": 2}, "jobs": {}},
}


class Mutator:
    """Makes random messages of job ``uid`` from a seed; `message` returns (head, body) as bytes."""

    def __init__(self, seed, uid):
        self.rng = random.Random(seed)
        self.uid = uid
        self.sequence = {wire.RECORDS: 0, wire.SPANS: 0}
        self._number = 1

    def message(self):
        rng = self.rng
        kind = rng.choice([wire.RECORDS] * 8 + [wire.SPANS] * 3 + [*DOCUMENTS])
        makers = {wire.RECORDS: self._records, wire.SPANS: self._spans}
        first, last, body = makers[kind]() if kind in makers else self._document(kind)
        if rng.random() < 0.15:
            body = self.corrupted(body)
        head = Head(kind, 0 if kind == wire.SAMPLES else self.uid, 0, first, last)
        if rng.random() < 0.05:
            return bytes(self.corrupted(wire.pack(head))), body
        return wire.pack(head), body

    def corrupted(self, data):
        """Return ``data`` with a few corruptions."""
        rng, data = self.rng, bytearray(data)
        for _ in range(rng.choice([1, 1, 2, 5, 20])):
            at = rng.randrange(len(data) + 1)
            corruption = rng.randrange(6)
            if corruption == 0 and at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            elif corruption == 1:
                data[at : at + 8] = struct.pack("<Q", rng.choice(EDGES))
            elif corruption == 2:
                del data[at : at + rng.choice([1, 8, 64, 4096])]
            elif corruption == 3:
                data[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 2, 9])))
            elif corruption == 4:
                data[at : at + 4] = struct.pack("<I", rng.choice(EDGES) & 0xFFFFFFFF)
            else:
                source = rng.randrange(len(data) + 1)
                data[at:at] = data[source : source + rng.choice([4, 100, 3000])]
        return data

    def _next(self, kind, count):
        first = self.sequence[kind] + 1
        if self.rng.random() < 0.01:
            first = self.rng.choice(EDGES)
        last = min(first + count - 1, 2**64 - 1)
        if self.rng.random() < 0.01:
            last = max(first, self.rng.choice(EDGES))
        if last < 2**62:  # after a larger number the collector would take every message for an old one
            self.sequence[kind] = last
        return first, last

    def _records(self):
        rng, count = self.rng, self.rng.choice([1, 1, 2, 5])
        first, last = self._next(wire.RECORDS, count)
        records = b""
        for number in range(count):
            kind, body = rng.choice(BODIES)
            if rng.random() < 0.5:
                body = (
                    self.corrupted_document(body) if kind in (layout.FRAMES, layout.REFUSED) else self.corrupted(body)
                )
            kind = rng.choice([kind] * 9 + [rng.randrange(70_000) & 0xFFFF])
            words = {name: rng.choice([1, 2, 3] * 3 + list(EDGES)) for name in ("step", "start_ns", "duration_ns")}
            half_words = {name: rng.choice([0, 2, 3, 2**32 - 1]) for name in ("thread", "key")}
            sequence = min(first + number, 2**64 - 1)
            records += record(sequence, kind, bytes(body), **words, **half_words, flags=rng.randrange(9))
        return first, last, records

    def _spans(self):
        rng, count = self.rng, self.rng.choice([1, 3, 50])
        first, last = self._next(wire.SPANS, count)
        spans = []
        for number in range(count):
            entry = list(span(number + 1, kind=layout.BATCH, start_ns=1_000 * number, flags=layout.FLAG_TRACED))
            if rng.random() < 0.3:
                entry[rng.choice([0, 1, 2, 8, 9])] = rng.choice(EDGES)
            spans.append(layout.SPAN.pack(*entry))
        return first, last, struct.pack("<QQ", rng.choice(EDGES), rng.choice(EDGES)) + b"".join(spans)

    def _document(self, kind):
        self._number += 1
        values = dict(DOCUMENTS[kind])
        if kind == wire.SAMPLES:
            sample = {"processes": self.rng.choice([1, True, -1, 2**70, "x", None]), "cpu_user_s": 1.5}
            values["jobs"] = {self.rng.choice([f"{self.uid:016x}", "1" * 17, "zz", "-1", "1_0", " 5", "0"]): sample}
        body = json.dumps(values).encode()
        return self._number, self._number, self.corrupted_document(body) if self.rng.random() < 0.7 else body

    def corrupted_document(self, body):
        """Return the JSON ``body`` with one value replaced, or with corruptions anywhere."""
        rng = self.rng
        positions = [at for at, byte in enumerate(body) if byte in b":[,"]
        if rng.random() < 0.3 or not positions:
            return bytes(self.corrupted(body))
        at = rng.choice(positions) + 1
        end = min((mark_at for mark in b",]}" if (mark_at := body.find(mark, at)) >= 0), default=len(body))
        return body[:at] + rng.choice(JSON_EDGES) + body[end:]
