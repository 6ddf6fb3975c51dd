"""Messages of views as JSON objects: protobuf's own names and values.

The code does not recurse, since trees may be deeper than the stack allows.
"""

from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from .text import CHILDREN

#: Fields with several values or with messages.
_NODES: Final = "graph_nodes"
_SHAPES: Final = "input_shapes"
_VALUE: Final = "tensor_value"
_DEVICES: Final = "devices"
_SPECIAL: Final = frozenset({CHILDREN, _NODES, _SHAPES, _VALUE, _DEVICES, "shapes"})


def message_document(message: Any) -> dict[str, Any]:
    """Return a GraphNodeProto or MultiGraphNodeProto as a JSON object.

    Keys are the proto's field names. Numbers and strings are present even if 0 or empty; int64
    values are numbers.
    """
    root = _entry(message)
    pending = [(message, root)]
    while pending:
        parent, document = pending.pop()
        children = [(child, _entry(child)) for child in parent.children]
        document[CHILDREN] = [child_document for _, child_document in children]
        pending += children
    return root


@cache
def _plain_fields(descriptor: Descriptor) -> tuple[str, ...]:
    """Return the fields with a single number or string."""
    return tuple(field.name for field in descriptor.fields if field.name not in _SPECIAL)


@cache
def _has_field(descriptor: Descriptor, name: str) -> bool:
    return name in descriptor.fields_by_name


def _shape(shape: Any) -> dict[str, Any]:
    return {"unknown_rank": True} if shape.unknown_rank else {"dim": [{"size": dim.size} for dim in shape.dim]}


def _entry(message: Any) -> dict[str, Any]:
    """Return a message without its children."""
    descriptor = message.DESCRIPTOR
    document: dict[str, Any] = {name: getattr(message, name) for name in _plain_fields(descriptor)}
    if _has_field(descriptor, _DEVICES):
        document[_DEVICES] = list(message.devices)
        document[_SHAPES] = {
            str(position): _shape(message.input_shapes[position]) for position in sorted(message.input_shapes)
        }
        if message.HasField(_VALUE):
            document[_VALUE] = {
                field.name: _field_value(field, value) for field, value in message.tensor_value.ListFields()
            }
    if _has_field(descriptor, _NODES):
        document[_NODES] = [_entry(node) for node in message.graph_nodes]
    return document


def _field_value(field: FieldDescriptor, value: Any) -> Any:
    return value if field.name == "dtype" else list(value)
