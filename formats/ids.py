"""Ids of jobs and launches as text, and the number of all threads in samples."""

from __future__ import annotations

#: In the `busy_threads` of a sample, the number of the row about all threads of the process.
ALL_THREADS = 0


def hex_id(number: int) -> str:
    """Return an id as it is in file names, in JSON and on screen: 16 hexadecimal digits."""
    return "%016x" % number
