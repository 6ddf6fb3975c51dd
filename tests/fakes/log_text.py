"""Standard error of a job, comparable from run to run."""

import re

#: Addresses, and numbers (clocks, ports, process ids) with the spaces that TensorFlow puts before
#: them.
_VARYING = re.compile(r" *(?:0x[0-9a-f]+|\d+)")


def without_numbers(text: str) -> str:
    """Return ``text`` without the addresses and numbers that differ from run to run."""
    return _VARYING.sub("", text)
