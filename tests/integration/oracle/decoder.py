"""Decodes messages by field numbers alone, since tfprof's message definitions may be wrong."""

from collections.abc import Iterator
from typing import Any, Final

#: Kind of message -> {field number: kind of its value}. The kind of a value is a kind of message,
#: "text" (bytes), "number", or "numbers" (packed or not). A pair (kind of the keys, kind of the
#: values) is a map.
KINDS: Final[dict[str, dict[int, Any]]] = {
    "GraphNodeProto": {1: "text", 10: "text", 11: "shape", 12: "GraphNodeProto", 15: "text", 16: ("number", "shape")},
    "MultiGraphNodeProto": {1: "text", 10: "GraphNodeProto", 11: "MultiGraphNodeProto"},
    "AdviceProto": {1: ("text", "Checker")},
    "Checker": {2: "text"},
    "shape": {2: "dim"},
    "dim": {2: "text"},
    "pprof": {1: "ValueType", 2: "Sample", 4: "Location", 5: "Function", 6: "text", 13: "numbers"},
    "ValueType": {},
    "Sample": {1: "numbers", 2: "numbers", 3: "Label"},
    "Label": {},
    "Location": {4: "Line"},
    "Line": {},
    "Function": {},
    "ProfileProto": {1: ("number", "ProfileNode"), 3: "numbers", 4: ("number", "text")},
    "ProfileNode": {
        1: "text",
        2: ("number", "number"),
        3: ("number", "number"),
        4: "numbers",
        5: "text",
        6: "text",
        7: "text",
        9: "text",
        10: "CodeDef",
        11: ("text", "AttrValue"),
        12: ("number", "ExecProfile"),
        14: ("number", "number"),
        15: ("number", "Tuple"),
        16: ("number", "Tuple"),
    },
    "CodeDef": {1: "Trace"},
    "Trace": {1: "text", 3: "text", 4: "text"},
    "AttrValue": {1: "ListValue", 2: "text", 7: "shape", 8: "text", 9: "text"},
    "ListValue": {2: "text", 3: "numbers", 5: "numbers", 6: "numbers", 7: "shape", 8: "text"},
    "ExecProfile": {
        4: ("text", "ExecTime"),
        5: ("text", "ExecTime"),
        6: "text",
        7: "ExecMemory",
        11: "AllocationRecord",
    },
    "ExecTime": {1: "Tuple"},
    "Tuple": {1: "numbers"},
    "ExecMemory": {11: ("number", "Memory")},
    "Memory": {},
    "AllocationRecord": {},
}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return number, at


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    # Most tags, values and lengths have one byte. They are read here, since calls are slower.
    at, end = 0, len(data)
    while at < end:
        tag, at = (data[at], at + 1) if data[at] < 0x80 else _varint(data, at)
        wire_type = tag & 7
        length = {1: 8, 5: 4}.get(wire_type)
        if length is None:
            length, at = (data[at], at + 1) if data[at] < 0x80 else _varint(data, at)
        if wire_type == 0:  # the number is the value itself
            yield tag >> 3, length
        else:
            yield tag >> 3, data[at : at + length]
            at += length


def _numbers(data: bytes) -> list[int]:
    at, numbers = 0, []
    while at < len(data):
        number, at = _varint(data, at)
        numbers.append(number)
    return numbers


def _value(kind: Any, value: Any) -> Any:
    if kind == "text":
        return value.decode("utf-8", "replace")
    if kind == "number":
        return value
    return decode(kind, value)


def _entry(kind: tuple[str, str], data: bytes) -> tuple[Any, Any]:
    fields = dict(_fields(data))
    defaults = {"number": 0}
    return tuple(_value(part, fields.get(at, defaults.get(part, b""))) for at, part in enumerate(kind, 1))


def decode(kind: str, data: bytes) -> dict[int, Any]:
    """Return a message as {field number: values}; maps are dicts.

    Number fields with the value 0 are left out.
    """
    kinds = KINDS[kind]
    message: dict[int, Any] = {}
    for number, value in _fields(data):
        value_kind = kinds.get(number, "number" if isinstance(value, int) else "text")
        if isinstance(value_kind, tuple):
            key, entry = _entry(value_kind, value)
            message.setdefault(number, {})[key] = entry
        elif value_kind == "numbers":
            message.setdefault(number, []).extend([value] if isinstance(value, int) else _numbers(value))
        elif value_kind == "number":
            message[number] = value
        else:
            message.setdefault(number, []).append(_value(value_kind, value))
    return {number: value for number, value in message.items() if value != 0}
