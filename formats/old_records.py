"""Converts records of tfprof 0.2.0: of its channels (version 1) and its agents (wire version 1)."""

from __future__ import annotations

import json

from . import layout
from .errors import FormatError


def converted_records(data: bytes) -> bytes:
    """Return the records in ``data`` with each profiler session in the current form.

    The records keep their sequence numbers. FormatError if ``data`` is cut short.
    """
    at, parts, header = 0, [], layout.RECORD
    while at < len(data):
        size, kind = header.unpack_from(data, at)[:2] if len(data) - at >= header.size else (0, 0)
        if not header.size <= size <= len(data) - at:
            raise FormatError("a record of %d bytes where %d are left" % (size, len(data) - at))
        record = data[at : at + size]
        parts.append(_converted_session(record) if kind == layout.XSPACE else record)
        at += size
    return b"".join(parts)


def _converted_session(record: bytes) -> bytes:
    """Return the session in the current form, or a refusal if the session has several steps.

    In the old form ``step`` is the first step and ``key`` the number of steps. The step gets the
    start and duration of the session, and 0 as its key, which is unknown.
    """
    steps = layout.RECORD.unpack_from(record)[-1]
    if steps != 1:
        text = "a profiler session of %d steps, recorded by an earlier release" % steps
        return refusal(record, "old-session", text)
    _, kind, flags, seq, step, mono, real, duration, thread, _ = layout.RECORD.unpack_from(record)
    size = len(record) + layout.XSPACE_HEAD.size
    header = layout.RECORD.pack(size, kind, flags, seq, step, mono, real, duration, thread, 0)
    return header + layout.XSPACE_HEAD.pack(real, 1, 0) + record[layout.RECORD.size :]


def refusal(record: bytes, slug: str, text: str) -> bytes:
    """Return a REFUSED record in place of ``record``, with the same sequence number."""
    seq, _, mono, real = layout.RECORD.unpack_from(record)[3:7]
    body = json.dumps({"slug": slug, "text": text}).encode()
    size = layout.RECORD.size + len(body)
    return layout.RECORD.pack(size, layout.REFUSED, 0, seq, 0, mono, real, 0, 0, 0) + body
