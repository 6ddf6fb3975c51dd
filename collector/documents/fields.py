"""A document with the fields of a record."""

from collections.abc import Mapping
from functools import partial
from typing import TypeVar, cast

T = TypeVar("T")


def fields(kind: type[T], record: object, /, **given: object) -> T:
    """Return a document of type ``kind``: its fields that are not ``given`` come from ``record``.

    A record is a frozen answer, or what a status file says; there a field may be missing: null.
    """
    value_of = record.get if isinstance(record, Mapping) else partial(getattr, record)
    return cast("T", {name: given[name] if name in given else value_of(name) for name in kind.__annotations__})
