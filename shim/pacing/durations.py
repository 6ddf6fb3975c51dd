"""The durations of steps, by key: how long untraced ones take, and what a trace adds to that."""

from __future__ import annotations

from collections import deque
from typing import Iterable

SAMPLES = 5  # number of untraced durations that an estimate needs
_HISTORY = 9  # recent untraced durations kept for each key
_PENDING_MAX = 32  # durations kept until an estimate exists
KEYS_MAX = 8  # this many keys have durations of their own from the start
_ENTRIES_MAX = 256  # maximum number of keys with durations of their own
_SEEN_MAX = 4096  # maximum number of keys that are remembered to recognize those that come back


class KeyDurations(object):
    """Durations of the steps of one key, or of all keys without an entry (``is_shared``), in ns."""

    def __init__(self, is_shared: bool = False) -> None:
        self.is_shared = is_shared
        self.step_count = 0
        self.has_first_trace = False  # whether its first trace was made, or left to the budget
        self.untraced: deque[int] = deque(maxlen=_HISTORY)
        self.traced: deque[int] = deque(maxlen=SAMPLES)
        self.pending: deque[int] = deque(maxlen=_PENDING_MAX)  # traced, without an estimate of their extra time yet

    @property
    def is_estimated(self) -> bool:
        """Whether it is known how long an untraced step takes."""
        return len(self.untraced) >= SAMPLES

    def extra_time(self, duration: int) -> int:
        """Estimate the extra time of a traced step.

        Its duration is cut at twice the median of traced steps, and ten times that of the others.
        """
        usual, traced = _median(self.untraced), _median(self.traced) if self.traced else duration
        return max(0, min(duration, 2 * traced, 10 * usual) - usual)


class Durations(object):
    """Durations of the steps of one kind, and the costs of its traces, in ns."""

    def __init__(self) -> None:
        self._keys: dict[int, KeyDurations] = {}
        self._new_keys = KeyDurations(is_shared=True)  # of keys seen once only: those of a growing graph
        self._seen_keys: set[int] = set()
        self._costs: deque[int] = deque(maxlen=SAMPLES)  # costs of the last traces
        self._unreported_ns = 0  # unreported extra time of steps directly after a trace; negative if they took less

    def entry(self, key: int) -> KeyDurations:
        """Return the durations of ``key``: its own if it is one of the first, or has come back."""
        entry = self._keys.get(key)
        if entry is None:
            if len(self._keys) >= (_ENTRIES_MAX if key in self._seen_keys else KEYS_MAX):
                if len(self._seen_keys) < _SEEN_MAX:
                    self._seen_keys.add(key)
                return self._new_keys
            entry = self._keys[key] = KeyDurations()
        return entry

    def existing(self, key: int) -> KeyDurations:
        """Return the durations that the last ``entry`` of ``key`` returned."""
        return self._keys.get(key, self._new_keys)

    def may_be_late(self, entry: KeyDurations) -> bool:
        """Return whether ``entry`` may be that of a key that has come back."""
        return len(self._keys) > KEYS_MAX and not entry.is_shared

    def note_traced(self, key: int, duration: int, own_ns: int) -> int:
        """Record a traced step and our own work for it; return its extra time, 0 if unknown."""
        entry = self.existing(key)
        entry.traced.append(duration)
        if not entry.is_estimated:
            entry.pending.append(duration)
            return 0
        extra = entry.extra_time(duration)
        self._costs.append(extra + own_ns)
        return extra

    def extra_of_pending(self, entry: KeyDurations) -> int:
        """Return the extra time of traced steps that is known now that ``entry`` is estimated."""
        extras = [entry.extra_time(each) for each in entry.pending]
        self._costs.extend(extras)
        entry.pending.clear()
        return sum(extras)

    def extra_after_trace(self, entry: KeyDurations, duration: int) -> int:
        """Return the extra time of the step after a traced one.

        If this step is shorter than usual, the difference is subtracted from the extra time of the
        next step after a traced one.
        """
        if not entry.is_estimated:
            return 0
        usual = _median(entry.untraced)
        self._unreported_ns = max(self._unreported_ns + min(duration, 2 * usual) - usual, -usual)
        extra = max(self._unreported_ns, 0)
        self._unreported_ns -= extra
        if self._costs:
            self._costs[-1] += extra
        return extra

    def usual(self) -> int:
        """Return the median over the keys of the median untraced duration, 0 if none is known."""
        entries = (*self._keys.values(), self._new_keys)
        return _median([_median(entry.untraced) for entry in entries if entry.untraced] or [0])

    def next_cost(self) -> int:
        """Return the expected cost of the next trace."""
        return _median(self._costs) if self._costs else self.usual()


def _median(values: Iterable[int]) -> int:
    """Return the median of ``values``, the upper one of two middle values."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
