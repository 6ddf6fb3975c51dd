"""Reads a ProfileProto and replaces the ids of nodes and strings, which are arbitrary, by names."""

from collections.abc import Mapping
from typing import Any, Final

from integration.oracle.decoder import decode

#: Fields of ProfileProto and of its messages.
NODES, HAS_TRACE, STEPS, TEXTS, MISSES = 1, 2, 3, 4, 5
NAME, INPUTS, TRACE, ID, SLOTS = 1, 2, 10, 13, 14
FILE, FUNCTION, LINE = 6, 7, 8


def content(data: bytes) -> dict[str, Any]:
    """Return the content of a ProfileProto: nodes and inputs by name, frames as strings."""
    profile = decode("ProfileProto", data)
    nodes = profile.get(NODES, {})
    names: Final = {number: node[NAME][0] for number, node in nodes.items()}
    texts = profile.get(TEXTS, {})
    return {
        "nodes": {names[number]: _node(node, names, texts) for number, node in nodes.items()},
        "ids": sorted(nodes) == sorted(node.get(ID, 0) for node in nodes.values()),
        **{name: profile.get(field) for name, field in (("traced", HAS_TRACE), ("steps", STEPS), ("misses", MISSES))},
    }


def _node(node: Mapping[int, Any], names: Mapping[int, Any], texts: Mapping[int, Any]) -> dict[int, Any]:
    fields = {field: value for field, value in node.items() if field != ID}
    if INPUTS in fields:
        fields[INPUTS] = {position: names[number] for position, number in fields[INPUTS].items()}
    if SLOTS in fields:
        fields[SLOTS] = {names[number]: slot for number, slot in fields[SLOTS].items()}
    if TRACE in fields:
        frames = fields[TRACE][0].get(1, [])
        fields[TRACE] = [
            {**frame, **{field: texts[frame.get(field, 0)] for field in (FILE, FUNCTION, LINE)}} for frame in frames
        ]
    return fields
