"""The format `otlp`: steps and phases as a TracesData of OpenTelemetry's protocol (protobuf).

The file is also an ExportTraceServiceRequest, the body of a request to a collector.
"""

from collections.abc import Iterator

from ...formats.version import VERSION
from ..export.wire import bytes_field, fixed_field, number_field, text_field
from .otel import INTERNAL, Attributes, Event, Span, spans
from .request import Request

# Numbers of fields, as in opentelemetry/proto/trace/v1/trace.proto in OpenTelemetry's source.
_RESOURCE_SPANS, _RESOURCE, _SCOPE_SPANS, _SCOPE, _SPANS = 1, 1, 2, 1, 2
_TRACE_ID, _SPAN_ID, _PARENT, _NAME, _KIND, _START, _END, _ATTRIBUTE, _EVENT = 1, 2, 4, 5, 6, 7, 8, 9, 11
_TEXT, _INTEGER = 1, 3
_SCOPE_FIELD = bytes_field(_SCOPE, text_field(1, "tfprof") + text_field(2, VERSION))


def pieces(request: Request) -> Iterator[bytes]:
    """Yield the file; errors are those of `spans`."""
    for batch in spans(request):
        trace_id = bytes_field(_TRACE_ID, batch.trace_id)
        content = b"".join(bytes_field(_SPANS, trace_id + _span(span)) for span in batch.spans)
        resource = bytes_field(_RESOURCE, _attributes(1, batch.resource))
        yield bytes_field(_RESOURCE_SPANS, resource + bytes_field(_SCOPE_SPANS, _SCOPE_FIELD + content))


def _span(span: Span) -> bytes:
    return b"".join(
        (
            bytes_field(_SPAN_ID, span.id.to_bytes(8, "big")),
            bytes_field(_PARENT, span.parent.to_bytes(8, "big")) if span.parent else b"",
            text_field(_NAME, span.name),
            number_field(_KIND, INTERNAL),
            fixed_field(_START, span.start_ns),
            fixed_field(_END, span.end_ns),
            _attributes(_ATTRIBUTE, span.attributes),
            *(bytes_field(_EVENT, _event(event)) for event in span.events),
        )
    )


def _event(event: Event) -> bytes:
    return fixed_field(1, event.time_ns) + text_field(2, event.name) + _attributes(3, event.attributes)


def _attributes(field: int, attributes: Attributes) -> bytes:
    return b"".join(
        bytes_field(
            field,
            text_field(1, name)
            + bytes_field(2, text_field(_TEXT, value) if isinstance(value, str) else number_field(_INTEGER, value)),
        )
        for name, value in attributes.items()
    )
