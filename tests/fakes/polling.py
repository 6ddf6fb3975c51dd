"""Waits for what another process or thread does."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
INTERVAL_S = 0.02


def until(condition: Callable[[], Result], description: str = "the condition", timeout_s: float = 90.0) -> Result:
    """Call ``condition`` until its result is true; return the result. Fail after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while not (result := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {description}"
        time.sleep(INTERVAL_S)
    return result
