"""Requests to the agents of other hosts, and the replies, as bodies of the wire (docs/wire.md)."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from .errors import FormatError
from .orders import NO_SLUG, Giver, giver_of

#: Commands of tfprof that an agent runs for another host.
PS, DOCTOR, ATTACH = "ps", "doctor", "attach"
#: Time limits of these commands (seconds).
LIMITS_S = {PS: 20.0, DOCTOR: 20.0, ATTACH: 150.0}
#: Time from SIGTERM to SIGKILL for a command that exceeds its time limit; longer than detaching
#: takes (seconds).
END_S = 15.0
#: Options of `attach` that a request may have.
ATTACH_OPTIONS = ("name", "trace", "trace-level", "steps", "method")
#: Maximum sizes of the bodies of a request and of a reply (bytes).
REQUEST_MAX = 1 << 16
REPLY_MAX = 4 << 20
_PID_MAX = 1 << 22
_TEXT_MAX = 1000


class RequestError(FormatError):
    """A request or a reply is malformed."""

    slug = "bad-request"


class Request(NamedTuple):
    """One request: a command, the process that it is about, and options of `attach` by name."""

    command: str
    giver: Giver
    pid: int = 0
    options: Mapping[str, str] = {}

    @property
    def arguments(self) -> list[str]:
        """The command line of `tfprof`; its standard output is one JSON document."""
        if self.command == PS:
            return [PS, "--json"]
        options = ["--%s=%s" % item for item in sorted(self.options.items())]
        return [self.command, "--json", *(["--no-wait", *options] if self.command == ATTACH else []), str(self.pid)]

    def document(self) -> dict[str, Any]:
        """Return the request as a JSON object."""
        return dict(self._asdict(), giver=dict(self.giver._asdict()), options=dict(self.options))


def request_of(values: Mapping[str, Any]) -> Request:
    """Return the request in a JSON object; FormatError if it is invalid."""
    command, pid, options = values.get("command"), values.get("pid", 0), values.get("options", {})
    if not isinstance(command, str) or command not in LIMITS_S:
        raise RequestError("unknown request %r" % str(command)[:64])
    if type(pid) is not int or not (command != PS) <= pid <= _PID_MAX:
        raise RequestError("a request about no process")
    if not isinstance(options, dict) or (options and command != ATTACH) or not options.keys() <= set(ATTACH_OPTIONS):
        raise RequestError("a request with unknown options")
    if not all(isinstance(text, str) and len(text) <= _TEXT_MAX and "\0" not in text for text in options.values()):
        raise RequestError("a request with an invalid option")
    return Request(command, giver_of(values), pid, options)


class Reply(NamedTuple):
    """What the command printed on an agent's host, and its exit status.

    With a ``slug``, the command did not run to its end, for the reason in ``text``.
    """

    status: int = 1
    output: str = ""
    errors: str = ""
    slug: str = NO_SLUG
    text: str = ""

    def document(self) -> dict[str, Any]:
        """Return the reply as a JSON object."""
        return dict(self._asdict())


def reply_of(values: Mapping[str, Any]) -> Reply:
    """Return the reply in a JSON object; RequestError if it is invalid."""
    status = values.get("status")
    texts = [values.get(name) for name in Reply._fields[1:]]
    if type(status) is not int or not 0 <= status <= 255 or not all(isinstance(text, str) for text in texts):
        raise RequestError("a reply without a status or texts")
    return Reply(status, *map(str, texts))
