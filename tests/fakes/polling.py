"""Waits for what another process or thread does."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
INTERVAL_S = 0.02


def until(condition: Callable[[], Found], what: str = "the condition", patience_s: float = 90.0) -> Found:
    """Call ``condition`` until its result is true, and return that; fail after ``patience_s``."""
    deadline = time.monotonic() + patience_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(INTERVAL_S)
    return found
