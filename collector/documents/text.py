"""Documents as text: JSON, in pieces.

The rows of a view, curves, and the entries of a message have a line each. The code does not
recurse, since trees may be deeper than the stack allows.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

#: Name of the field with the entries below an entry of a message.
CHILDREN: Final = "children"
_INDENT: Final = 2


def pieces(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a document as text."""
    separator = "{\n"
    for name, value in document.items():
        yield f"{separator}{' ' * _INDENT}{json.dumps(name)}: "
        yield from _WRITERS.get(name, _value)(value)
        separator = ",\n"
    yield "\n}\n"


def line(document: Mapping[str, Any]) -> str:
    """Return a document as a line, for a stream of documents."""
    return json.dumps(document)


def _value(value: Any) -> Iterator[str]:
    yield json.dumps(value, indent=_INDENT).replace("\n", "\n" + " " * _INDENT)


def _rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield rows, each on a line."""
    separator = "["
    for row in rows:
        yield f"{separator}\n{json.dumps(row)}"
        separator = ","
    yield "]" if rows else "[]"


def _tree(root: Mapping[str, Any]) -> Iterator[str]:
    """Yield a tree of entries with children, each entry on a line."""
    pending: list[Any] = [root]
    is_first = True
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
            is_first = False
            continue
        entry = {name: value for name, value in item.items() if name != CHILDREN}
        yield f'{"" if is_first else ","}\n{json.dumps(entry, separators=(",", ":"))[:-1]},"{CHILDREN}":['
        is_first = True
        pending.append("]}")
        pending.extend(reversed(item[CHILDREN]))


#: Fields with a layout of their own.
_WRITERS: Final[dict[str, Callable[[Any], Iterator[str]]]] = {
    "profile": _tree,
    "resource_curves": _rows,
    "rows": _rows,
    "step_curves": _rows,
}
