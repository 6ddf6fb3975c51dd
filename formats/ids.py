"""Ids of jobs and launches as text."""

from __future__ import annotations


def hex_id(number: int) -> str:
    """Return an id as it is in file names, in JSON and on screen: 16 hexadecimal digits."""
    return "%016x" % number
