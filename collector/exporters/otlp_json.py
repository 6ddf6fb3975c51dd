"""The format `otlp-json`: the spans of `otlp` as JSON, each line a TracesData."""

import json
from collections.abc import Iterator
from typing import Any

from ...formats.version import VERSION
from ..tfviews.encoding import valid_utf8
from .otel import INTERNAL, Attributes, Event, Span, spans
from .request import Request


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the lines of the file; errors are those of `spans`."""
    for batch in spans(request):
        scope_spans = {
            "scope": {"name": "tfprof", "version": VERSION},
            "spans": [{"traceId": batch.trace_id.hex(), **_span(span)} for span in batch.spans],
        }
        line = {"resourceSpans": [{"resource": _attributes(batch.resource), "scopeSpans": [scope_spans]}]}
        yield valid_utf8(json.dumps(line, ensure_ascii=False, separators=(",", ":"))).encode() + b"\n"


def _span(span: Span) -> dict[str, Any]:
    return {
        "spanId": f"{span.id:016x}",
        **({"parentSpanId": f"{span.parent:016x}"} if span.parent else {}),
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        **_attributes(span.attributes),
        **({"events": list(map(_event, span.events))} if span.events else {}),
    }


def _event(event: Event) -> dict[str, Any]:
    return {"timeUnixNano": str(event.time_ns), "name": event.name, **_attributes(event.attributes)}


def _attributes(attributes: Attributes) -> dict[str, Any]:
    """Return the field with the attributes; 64-bit numbers are texts in JSON."""
    values = [
        {"key": name, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}
        for name, value in attributes.items()
    ]
    return {"attributes": values} if values else {}
