"""Adapters for channels of earlier versions: jobs started before an upgrade are read to their end.

An adapter converts the content of a channel from one version to the next. Fields that the old
version lacks are left out.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..formats import layout
from ..formats.old_records import converted_records, refusal
from ..formats.version import CHANNEL_VERSION

#: Words and tables that version 1 lacks.
_NOT_IN_1: Final = (
    "missed",
    "ring_error",
    "times",
    "failed",
    "order_step",
    "order_kind",
    "order_traced",
    "order_over",
    "order_budget",
    "policy_refused",
    "agent_lost",
)


class Adapter(NamedTuple):
    """Converters from one version to another.

    They are for the counters, for whole records, and for the header of a record that is too large.
    """

    counters: Callable[[dict[str, Any]], dict[str, Any]]
    records: Callable[[bytes], bytes]
    too_large_record: Callable[[bytes], bytes]


def adapter_of(version: int) -> Adapter | None:
    """Return the adapter from ``version`` to this build's version, None if there is none."""
    return ADAPTERS.get((version, CHANNEL_VERSION))


def _counters_of_1(counters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in counters.items() if name not in _NOT_IN_1}


def _too_large_of_1(header: bytes) -> bytes:
    size = layout.RECORD.unpack_from(header)[0]
    return refusal(header, "record-too-large", f"a record of {size} bytes: the limit is {layout.RECORD_MAX}")


#: By (from, to): a version without a row is refused.
ADAPTERS: Final = {(1, CHANNEL_VERSION): Adapter(_counters_of_1, converted_records, _too_large_of_1)}
