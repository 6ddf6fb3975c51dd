"""The span keys of session runs: numbers of feeds, fetches and targets, and a hash of names."""

from __future__ import annotations

import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

#: Largest number of feeds, fetches or targets that a key can represent. It means this many or more.
COUNT_MAX = 15
_FEEDS_AT, _FETCHES_AT, _TARGETS_AT = 28, 24, 20  # bits


def with_feeds(key: int, feeds: int) -> int:
    """Return the key of a run with ``feeds`` feeds; ``key`` is from ``signature_key``."""
    return key | min(feeds, COUNT_MAX) << _FEEDS_AT


def signature_key(fetches: Sequence[str], targets: Sequence[str]) -> int:
    """Return the key of runs without feeds and with these names of fetches and targets."""
    names = "\0".join(list(fetches) + ["\0"] + list(targets))
    counts = min(len(fetches), COUNT_MAX) << _FETCHES_AT | min(len(targets), COUNT_MAX) << _TARGETS_AT
    return counts | zlib.crc32(names.encode()) & (1 << _TARGETS_AT) - 1


def fetches_key(fetches: int) -> int:
    """Return the key of partial runs without feeds and with ``fetches`` fetches."""
    return min(fetches, COUNT_MAX) << _FETCHES_AT


def call_counts(key: int) -> tuple[int, int, int]:
    """Return the numbers of feeds, fetches and targets in a key."""
    return key >> _FEEDS_AT, key >> _FETCHES_AT & COUNT_MAX, key >> _TARGETS_AT & COUNT_MAX
