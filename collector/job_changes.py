"""Changes jobs of a shared store by way of its service, which alone may write (docs/wire.md)."""

import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import zmq

from ..formats import wire
from ..formats.addresses import Endpoint
from ..formats.errors import TfprofError
from ..formats.runtime_dir import shared_endpoint
from ..formats.wire import Head
from .client import UnansweredError
from .records import document
from .store.protocols import JobReader

#: Time limit for one change, since the removal of a large job takes long (ms).
CHANGE_MS: Final = 60_000
#: Time limit for the connection; the service may have to start the collector (ms).
CONNECT_MS: Final = 20_000
#: Number of tries if another change of the same tags comes first.
_TRIES: Final = 10


class ServiceAwayError(TfprofError):
    """The service of a shared store does not run."""

    slug = "collector-away"


class ServiceChanges:
    """Changes of jobs by the service at ``endpoint``, which makes them for their user only."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def remove(self, uids: Iterable[int]) -> None:
        """Remove the jobs ``uids``; TfprofError if the service refuses or does not answer."""
        for uid in uids:
            self._change(uid, {"remove": True})

    def change_tags(self, job: JobReader, new_tags: Callable[[tuple[str, ...]], Sequence[str]]) -> tuple[str, ...]:
        """Replace the tags of ``job`` by ``new_tags`` of the current ones, and return them."""
        for tries_left in reversed(range(_TRIES)):
            before = job.tags()
            tags = tuple(new_tags(before))
            try:
                self._change(job.info.uid, {"before": before, "tags": tags})
            except TfprofError as error:
                if error.slug != "tags-changed" or not tries_left:
                    raise
            else:
                break
        return tags

    def _change(self, uid: int, values: Mapping[str, Any]) -> None:
        with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
            socket.linger = 0
            socket.immediate = 1
            socket.connect(self._endpoint.url)
            if not socket.poll(CONNECT_MS, zmq.POLLOUT):
                raise ServiceAwayError(f"the service at {self._endpoint.place} does not answer")
            number = secrets.randbits(62) | 1
            socket.send_multipart((wire.pack(Head(wire.CHANGE, uid, 0, 0, number)), json.dumps(values).encode()))
            while socket.poll(CHANGE_MS):
                frames = socket.recv_multipart()
                head = wire.unpack(frames[0])
                if head.last != number:
                    continue
                if head.type == wire.ACK:
                    return
                reason = document(memoryview(frames[1]))
                raise TfprofError(str(reason.get("text")), str(reason.get("slug")))
        raise UnansweredError("the service does not answer; the change may be made")


def service_of(store: str) -> ServiceChanges | None:
    """Return the service that changes jobs of ``store``, None if this user may write it."""
    endpoint = shared_endpoint(store)
    return None if endpoint is None or os.access(store, os.W_OK, effective_ids=True) else ServiceChanges(endpoint)
