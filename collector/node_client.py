"""Asks the agents of other hosts through the collector, and yields their replies (docs/wire.md)."""

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple, TypeVar

import zmq

from ..commands.daemons import running_pid
from ..formats import requests, wire
from ..formats.addresses import is_remote, local_endpoint
from ..formats.errors import FormatError, TfprofError
from ..formats.requests import Reply, Request, reply_of
from ..formats.runtime_dir import endpoint_elsewhere, instance_dir
from ..formats.wire import Head
from .client import NodeAwayError, UnansweredError
from .records import document

T = TypeVar("T")

#: Time limit for the transport of a request and its reply, added to that of the command (seconds).
TRANSPORT_S: Final = 5.0
_LINE_MAX: Final = 1 << 20


class BadReplyError(TfprofError):
    """The reply of an agent is not what its command prints."""

    slug = "bad-reply"


class HostReply(NamedTuple):
    """The reply of an agent of ``host``."""

    host: str
    reply: Reply

    @property
    def failure(self) -> tuple[str, str] | None:
        """Slug and text of the reason why there is no document, None if there is one."""
        if self.reply.slug:
            return self.reply.slug, self.reply.text
        if self.reply.output:
            return None
        lines = self.reply.errors.strip().splitlines() or [f"it ended with status {self.reply.status} and no output"]
        text, _, rest = lines[-1].removeprefix("tfprof: ").rpartition(" [")
        return (rest[:-1], text) if text and rest.endswith("]") else ("node-failed", lines[-1])

    def content(self, parse: Callable[[Mapping[str, Any]], T]) -> T:
        """Return what ``parse`` makes of the document; TfprofError if there is none."""
        if self.failure is not None:
            slug, text = self.failure
            raise TfprofError(text, slug)
        try:
            return parse(document(memoryview(self.reply.output.encode("utf-8", "replace"))))
        except FormatError as error:
            raise BadReplyError(f"its reply is invalid: {error.args[0]}") from None


def ask(store: str, hosts: Sequence[str], request: Request) -> Iterator[HostReply]:
    """Make ``request`` to the agents of ``hosts`` (patterns); yield their replies as they come.

    A host without an agent, and one whose agent does not reply in time, has a reply with a slug.
    NodeAwayError if no collector of ``store`` runs.
    """
    instance = instance_dir(store)
    of_service = None if is_remote(store) else endpoint_elsewhere(store)
    if of_service is None and not running_pid(instance, "collector"):
        raise NodeAwayError(f"no collector of {store} runs, so no host is connected to it: tfprof serve --listen")
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        socket.maxmsgsize = requests.REPLY_MAX + _LINE_MAX
        socket.connect((of_service or local_endpoint(instance)).url)
        number = secrets.randbits(62) | 1
        body = json.dumps({**request.document(), "hosts": list(hosts)}).encode()
        socket.send_multipart((wire.pack(Head(wire.ASK, 0, 0, 0, number)), body))
        yield from _replies(socket, number, hosts, requests.LIMITS_S[request.command] + requests.END_S)


def _replies(socket: Any, number: int, hosts: Sequence[str], seconds: float) -> Iterator[HostReply]:
    deadline = time.monotonic() + TRANSPORT_S
    pending: dict[str, str] | None = None
    while pending is None or pending:
        if not socket.poll(max(0, round(1000 * (deadline - time.monotonic())))):
            break
        line, reply = _parsed(socket.recv_multipart(), number)
        if line is None:
            continue
        if "asked" in line:
            pending, deadline = dict(line["asked"]), time.monotonic() + seconds + TRANSPORT_S
            yield from (HostReply(host, Reply(slug=slug, text=text)) for host, slug, text in line["refused"])
            yield from _away(hosts, {*pending.values(), *(refused[0] for refused in line["refused"])})
        elif pending is not None and (host := pending.pop(line["agent"], None)) is not None:
            yield HostReply(host, reply)
    if pending is None:
        raise UnansweredError("the collector does not answer")
    text = "its agent does not answer; what was asked may be done"
    yield from (HostReply(host, Reply(slug=UnansweredError.slug, text=text)) for host in pending.values())


def _away(hosts: Sequence[str], known: set[str]) -> Iterator[HostReply]:
    """Yield a reply for each pattern in ``hosts`` that no agent in ``known`` matches."""
    for pattern in hosts:
        if not any(fnmatchcase(host.lower(), pattern.lower()) for host in known):
            text = (
                f"no agent of {pattern} is connected: `tfprof start` there starts one, and `tfprof status` says why "
                "it is not connected; without a job it ends after the setting agent-idle"
            )
            yield HostReply(pattern, Reply(slug=NodeAwayError.slug, text=text))


def _parsed(frames: list[bytes], number: int) -> tuple[dict[str, Any] | None, Reply]:
    """Return the first line and the reply of a message about request ``number``, else None.

    The first line is the collector's, the reply an agent's. TfprofError after a refusal.
    """
    head = wire.unpack(frames[0])
    if head.type == wire.REFUSE:
        refusal = document(memoryview(frames[1]))
        raise TfprofError(f"the collector refuses it: {refusal.get('text')}", str(refusal.get("slug")))
    if head.type != wire.REPLY or head.last != number:
        return None, Reply()
    line, _, rest = frames[1].partition(b"\n")
    values = dict(json.loads(line))
    if "asked" in values:
        return values, Reply()
    try:
        return values, reply_of(document(memoryview(rest)))
    except FormatError as error:
        return values, Reply(slug=BadReplyError.slug, text=f"its reply is invalid: {error.args[0]}")
