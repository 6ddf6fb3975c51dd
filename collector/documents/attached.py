"""The processes that `tfprof attach --json` has attached to."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

from ...formats.ids import hex_id
from ..errors import FormatError
from .fields import fields


class Attached(NamedTuple):
    """A process that is profiled: its job, and how it was attached to.

    ``stopped_ns``: the longest stop of its main thread.
    """

    pid: int
    uid: int
    name: str
    method: str
    stopped_ns: int


class Unattached(NamedTuple):
    """A process that could not be attached to, and why."""

    pid: int
    slug: str
    text: str


class AttachedDocument(TypedDict):
    """A process that is profiled."""

    pid: Annotated[int, "The process id."]
    uid: Annotated[str, "The id of its job."]
    name: Annotated[str, "The name of its job; empty if it has none."]
    method: Annotated[str, "How it was attached to; channel if it was already profiled."]
    stopped_ns: Annotated[int, "The longest stop of its main thread, ns."]


class UnattachedDocument(TypedDict):
    """A process that could not be attached to."""

    pid: Annotated[int, "The process id."]
    slug: Annotated[str, "Why it could not (docs/errors.md)."]
    text: Annotated[str, "The same as a sentence."]


class AttachDocument(TypedDict):
    """The processes that were to be attached to."""

    schema: Annotated[Literal["tfprof.attach/1"], "The format and its version."]
    attached: Annotated[list[AttachedDocument], "The processes that are profiled."]
    failed: Annotated[list[UnattachedDocument], "The processes that could not be attached to."]


def attach_document(attached: Iterable[Attached], failed: Iterable[Unattached]) -> AttachDocument:
    """Return the results of attaching."""
    return {
        "schema": "tfprof.attach/1",
        "attached": [fields(AttachedDocument, one, uid=hex_id(one.uid)) for one in attached],
        "failed": [fields(UnattachedDocument, one) for one in failed],
    }


def attached_of(document: Mapping[str, Any]) -> Attached | Unattached:
    """Return the only result in the document of another host; FormatError unless it has one."""
    rows: list[Any] = [document.get("attached"), document.get("failed")]
    if document.get("schema") != "tfprof.attach/1" or sorted(map(_size, rows)) != [0, 1]:
        raise FormatError("its answer is not about one process")
    try:
        return Attached(*_values(rows[0][0])) if rows[0] else Unattached(*_fields(rows[1][0], Unattached))
    except (LookupError, TypeError, ValueError):
        raise FormatError("its answer lacks a field") from None


def _size(rows: object) -> int:
    return len(rows) if isinstance(rows, list) else -1


def _values(row: Mapping[str, Any]) -> list[Any]:
    values = _fields(row, Attached)
    return [values[0], int(values[1], 16), *values[2:]]


def _fields(row: Mapping[str, Any], kind: Any) -> list[Any]:
    """Return the values of the fields of ``kind``; the uid is a text. TypeError unless they fit."""
    types = {name: str if name == "uid" else type_ for name, type_ in kind.__annotations__.items()}
    values = [row[name] for name in types]
    if not all(type(value) is type_ for value, type_ in zip(values, types.values(), strict=True)):
        raise TypeError
    return values
