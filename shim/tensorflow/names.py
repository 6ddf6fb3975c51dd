"""What the job's functions are called: spans have keys alone, and the hello tells the name of each."""

from __future__ import annotations

import json

from .. import core
from ..clock import mono
from ..guard import guarded

#: So many are told, each cut to so many characters.
NAMES_MAX = 64
LENGTH_MAX = 64


class Names(object):
    """The names of what the steps of one kind call, by the keys of their spans; for those in ``known`` there is nothing more to do."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: set[int] = set()

    @guarded
    def publish(self, key: int, name: str) -> int:
        """Have the hello tell that steps with ``key`` are called ``name``, and return the ns spent; later where another thread is at it."""
        start = mono()
        channel = core.channel()
        if channel is None or not channel.names_lock.acquire(False):
            return 0
        try:
            self.known.add(key)
            if len(channel.names) < NAMES_MAX:
                from ..channel import channel_setup

                channel.names[key] = name[:LENGTH_MAX]
                channel_setup.write_hello(channel)
            return mono() - start
        finally:
            channel.names_lock.release()


def fitting(names: dict[int, str], room: int) -> dict[str, str]:
    """Return the first of ``names``, as many as take no more than ``room`` bytes of JSON."""
    found = {}
    for key, name in names.items():
        room -= len(json.dumps({str(key): name}))
        if room < 0:
            break
        found[str(key)] = name
    return found
