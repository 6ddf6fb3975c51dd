"""Reads a channel (docs/channel.md) in place of the agent, for tests of the shim alone."""

import json
import mmap
import os
import struct
from collections import namedtuple
from pathlib import Path

from tfprof.formats import layout

Span = namedtuple("Span", "start total ordinal count kind flags key thread low high parent")  # noqa: PYI024 - numbers
Record = namedtuple("Record", "kind flags seq step start_mono start_real duration thread key data")  # noqa: PYI024


class ChannelReader:
    """A channel opened through a descriptor; ``take`` reads what is unread and moves the tails."""

    def __init__(self, fd):
        size = os.fstat(fd).st_size
        self.map: mmap.mmap | bytes = mmap.mmap(fd, size)
        assert self.map[:8] == layout.MAGIC
        self.fd = os.dup(fd)
        self.records = []
        self.spans = []

    @classmethod
    def of_process(cls, pid):
        """Open the only channel of process ``pid``."""
        paths = channels(pid)
        assert len(paths) == 1, paths
        return cls.at(paths[0])

    @classmethod
    def at(cls, path):
        """Open the channel at ``path``, as ``channels`` returns it."""
        fd = os.open(path, os.O_RDWR)
        try:
            return cls(fd)
        finally:
            os.close(fd)

    def close(self):
        """Close the channel; its words keep their last values."""
        words = self.map[: layout.SPANS_AT]
        self.map.close()
        os.close(self.fd)
        self.map = words

    def word(self, name):
        """Return one of the job's or the agent's words."""
        at = (layout.JOB_WORDS if name in layout.JOB_WORDS else layout.AGENT_WORDS)[name]
        return struct.unpack_from("<Q", self.map, at)[0]

    def set_word(self, name, value):
        """Write one of the agent's words."""
        struct.pack_into("<Q", self.map, layout.AGENT_WORDS[name], value)

    def count(self, kind):
        """Return the number of steps, or other spans, of ``kind`` so far."""
        return struct.unpack_from("<Q", self.map, layout.COUNTS_AT + 8 * kind)[0]

    def hello(self):
        """Return the job's identity from the hello page."""
        size = self.word("hello_size")
        return json.loads(self.map[layout.HELLO_AT : layout.HELLO_AT + size])

    def fault(self):
        """Return the traceback of the first internal error, "" for none."""
        size = struct.unpack_from("<I", self.map, layout.FAULT_AT)[0]
        return self.map[layout.FAULT_AT + 4 : layout.FAULT_AT + 4 + size].decode()

    def take(self, ended=False):
        """Move everything unread to ``records`` and ``spans``.

        ``ended``: the job has ended, so the open span is taken, too.
        """
        self._take_spans(ended)
        self._take_records()
        return self

    def of_kind(self, kind):
        """Return the spans of one kind."""
        return [span for span in self.spans if span.kind == kind]

    def records_of(self, kind):
        """Return the records of one kind."""
        return [record for record in self.records if record.kind == kind]

    def _take_spans(self, ended):
        head = self.word("span_head")
        if ended and self.word("span_open") == head + 1:
            head += 1
        for number in range(self.word("span_tail"), head):
            at = layout.SPANS_AT + number % layout.SPAN_COUNT * layout.SPAN_SIZE
            self.spans.append(Span(*layout.SPAN.unpack_from(self.map, at)))
        self.set_word("span_tail", head)

    def _take_records(self):
        size, head, at = self.word("ring_size"), self.word("head"), self.word("tail")
        if size and len(self.map) < layout.RING_AT + size:
            self.map = mmap.mmap(self.fd, layout.RING_AT + size)
        while at < head:
            fields = layout.RECORD.unpack(self._bytes(at, layout.RECORD.size, size))
            data = self._bytes(at + layout.RECORD.size, fields[0] - layout.RECORD.size, size)
            self.records.append(Record._make((*fields[1:], data)))
            at += fields[0]
        assert at == head
        self.set_word("tail", head)

    def _bytes(self, at, length, size):
        assert 0 <= length <= size
        begin = at % size
        first = min(length, size - begin)
        base = layout.RING_AT
        return self.map[base + begin : base + begin + first] + self.map[base : base + length - first]


def ordinals(spans):
    """Return the numbers of the steps that ``spans`` count, in the order of the spans."""
    return [number for span in spans for number in range(span.ordinal, span.ordinal + span.count)]


def channels(pid):
    """Return the paths of the open channels of process ``pid``."""
    path_of_inode = {}
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if str(path.readlink()) == f"/memfd:{layout.MEMFD_NAME} (deleted)":
                path_of_inode[path.stat().st_ino] = str(path)
        except FileNotFoundError:
            continue
    return sorted(path_of_inode.values())
