"""Channels of earlier versions: jobs that were started before an upgrade are read to their end.

An adapter turns what lies in a channel of one version into what a channel of the next would have. What the old version does
not know is left out, and nothing is made up for it.
"""

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..formats import layout
from ..formats.version import CHANNEL_VERSION

#: Words and tables that version 1 has no room for.
_NOT_IN_1: Final = ("missed", "times", "failed")


class Adapter(NamedTuple):
    """From one version to another: the counters, whole records, and a record that is too large (its header)."""

    counters: Callable[[dict[str, Any]], dict[str, Any]]
    records: Callable[[bytes], bytes]
    too_large: Callable[[bytes], bytes]


def adapter_of(version: int) -> Adapter | None:
    """Return what reads a channel of ``version`` as one of this build's, None where it is not spoken."""
    return ADAPTERS.get((version, CHANNEL_VERSION))


def _counters_of_1(counters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in counters.items() if name not in _NOT_IN_1}


def _records_of_1(data: bytes) -> bytes:
    """Return the whole records ``data`` with each profiler session as version 2 has it."""
    at, parts = 0, []
    while at < len(data):
        size, kind = layout.RECORD.unpack_from(data, at)[:2]
        record = data[at : at + size]
        parts.append(_session_of_1(record) if kind == layout.XSPACE else record)
        at += size
    return b"".join(parts)


def _session_of_1(record: bytes) -> bytes:
    """Return a session of one step with the head of version 2; one of several steps, which has no times of theirs, as refused.

    ``step`` and ``key`` of version 1 are the first step and their number; the span key of the step is not known and the step's
    time is that of the session.
    """
    steps = layout.RECORD.unpack_from(record)[-1]
    if steps != 1:
        return _refused(
            record, "old-session", f"a profiler session of {steps} steps, recorded by a release before this one"
        )
    _, kind, flags, seq, step, mono, real, duration, thread, _ = layout.RECORD.unpack_from(record)
    size = len(record) + layout.XSPACE_HEAD.size
    header = layout.RECORD.pack(size, kind, flags, seq, step, mono, real, duration, thread, 0)
    return header + layout.XSPACE_HEAD.pack(real, 1, 0) + record[layout.RECORD.size :]


def _too_large_of_1(header: bytes) -> bytes:
    size = layout.RECORD.unpack_from(header)[0]
    return _refused(header, "record-too-large", f"a record of {size} bytes: {layout.RECORD_MAX} are taken")


def _refused(record: bytes, slug: str, text: str) -> bytes:
    """Return a record that says why ``record`` is not read, in its place in the sequence."""
    seq, _, mono, real = layout.RECORD.unpack_from(record)[3:7]
    body = json.dumps({"slug": slug, "text": text}).encode()
    size = layout.RECORD.size + len(body)
    return layout.RECORD.pack(size, layout.REFUSED, 0, seq, 0, mono, real, 0, 0, 0) + body


#: By (from, to): a version without a row is refused.
ADAPTERS: Final = {(1, 2): Adapter(_counters_of_1, _records_of_1, _too_large_of_1)}
