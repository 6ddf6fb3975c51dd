"""Cuts wire bodies into records and spans (docs/channel.md).

FormatError on any violation of the format.
"""

import json
import math
import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ..formats import layout
from .errors import FormatError

#: Maximum bytes of a JSON document: greetings, identities, counters, samples. Frames have another
#: limit, since those of a large graph are large.
JSON_MAX: Final = 4 << 20
#: Maximum nesting of a document: some JSON libraries can read a deeper one, but not write it.
DEPTH_MAX: Final = 16
_CLOCKS: Final = struct.Struct("<QQ")


class Record(NamedTuple):
    """One record of a job's ring; times in ns; `body` is a view into the message."""

    kind: int
    flags: int
    seq: int
    step: int
    start_mono_ns: int
    start_real_ns: int
    duration_ns: int
    thread: int
    key: int
    body: memoryview


class Span(NamedTuple):
    """One entry of a job's span ring; times in ns.

    `steps` is the number of steps that the entry stands for. `start_mono_ns` is on the job's
    monotonic clock.
    """

    start_mono_ns: int
    total_ns: int
    ordinal: int
    steps: int
    kind: int
    flags: int
    key: int
    thread: int
    min_ns: int
    max_ns: int
    parent: int


class StepStart(NamedTuple):
    """The number of a step, and its start (ns)."""

    step: int
    ns: int


def measured_start(ordinal: int, steps: int, start_ns: int, total_ns: int, *, is_sampled: bool) -> StepStart:
    """Return the one start that was measured of the steps of an entry.

    It is that of the first step, but of sampled ones that of the last, the only one that was timed.
    """
    if is_sampled:
        return StepStart(ordinal + steps - 1, start_ns + total_ns - total_ns // steps)
    return StepStart(ordinal, start_ns)


def cut_records(body: memoryview, first: int, last: int) -> list[Record]:
    """Return the records that fill ``body``, numbered ascending from ``first`` to ``last``."""
    records: list[Record] = []
    offset, end, header = 0, len(body), layout.RECORD
    while offset < end:
        if end - offset < header.size:
            raise FormatError(f"{end - offset} bytes left after {len(records)} records, too few for a header")
        size, kind, flags, seq, step, mono, real, duration, thread, key = header.unpack_from(body, offset)
        if not header.size <= size <= end - offset:
            raise FormatError(f"a record of {size} bytes where {end - offset} are left")
        if records and seq <= records[-1].seq:
            raise FormatError(f"record {seq} after record {records[-1].seq}")
        data = body[offset + header.size : offset + size]
        records.append(Record(kind, flags, seq, step, mono, real, duration, thread, key, data))
        offset += size
    if not records or (records[0].seq, records[-1].seq) != (first, last):
        raise FormatError(f"a message does not hold the records {first} to {last} that its head states")
    return records


def cut_spans(body: memoryview, first: int, last: int) -> tuple[int, Iterator[Span]]:
    """Return the offset from monotonic to real time, and the span entries ``first`` to ``last``.

    The offset is in ns.
    """
    if last - first >= layout.SPAN_COUNT:
        raise FormatError(f"span entries {first} to {last}: a span ring holds {layout.SPAN_COUNT}")
    if len(body) != _CLOCKS.size + (last - first + 1) * layout.SPAN.size:
        raise FormatError(f"{len(body)} bytes do not hold span entries {first} to {last}")
    mono, real = _CLOCKS.unpack_from(body)
    return real - mono, map(Span._make, layout.SPAN.iter_unpack(body[_CLOCKS.size :]))


def document(body: memoryview) -> dict[str, Any]:
    """Return the JSON object in ``body``.

    Its numbers are finite. Lone surrogates in its texts are replaced, so that UTF-8 can encode
    them.
    """
    if len(body) > JSON_MAX:
        raise FormatError(f"{len(body)} bytes of JSON, more than {JSON_MAX}")
    text = bytes(body)
    try:
        value = json.loads(text.decode(), parse_float=_finite, parse_constant=_finite)
        if b"\\u" in text:
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise FormatError("JSON, but not an object")
    if text.count(b"[") + text.count(b"{") > DEPTH_MAX:
        _check_depth(value)
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not a finite number")
    return value


def _check_depth(value: Any) -> None:
    """Raise FormatError if objects and lists are nested too deeply."""
    containers = [value]
    for _ in range(DEPTH_MAX):
        contents = [container.values() if isinstance(container, dict) else container for container in containers]
        containers = [child for children in contents for child in children if isinstance(child, dict | list)]
        if not containers:
            return
    raise FormatError(f"JSON that is more than {DEPTH_MAX} levels deep")
