"""The names of the job's functions: spans hold keys, the hello maps them to names."""

from __future__ import annotations

import json

from .. import core
from ..clock import mono
from ..guard import guarded

#: Maximum number of names, and their maximum length.
NAMES_MAX = 64
LENGTH_MAX = 64


class Names(object):
    """Publishes the names of the functions that steps of one kind call.

    ``published`` are the span keys of the published names, and of those beyond NAMES_MAX.
    """

    __slots__ = ("published",)

    def __init__(self) -> None:
        self.published: set[int] = set()

    @guarded
    def publish(self, key: int, name: str) -> int:
        """Publish ``name`` for ``key`` in the hello and return the ns spent.

        If another thread is publishing, return 0; a later step tries again.
        """
        start = mono()
        channel, state = core.channel(), core.state()
        hold = None if channel is None else channel.names_lock.take()
        if channel is None or state is None or hold is None:
            return 0
        try:
            self.published.add(key)
            if len(channel.names) < NAMES_MAX:
                from ..channel import channel_setup

                channel.names[key] = name[:LENGTH_MAX]
                channel_setup.write_hello(channel, state)
            return mono() - start
        finally:
            del hold


def names_that_fit(names: dict[int, str], room: int) -> dict[str, str]:
    """Return as many of ``names``, from the first on, as fit into ``room`` bytes of JSON."""
    fitting_names = {}
    for key, name in names.items():
        room -= len(json.dumps({str(key): name}))
        if room < 0:
            break
        fitting_names[str(key)] = name
    return fitting_names
