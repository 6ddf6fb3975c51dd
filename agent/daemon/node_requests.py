"""Requests of another host: this agent runs a command of tfprof for each, as its own user."""

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...commands import daemons, settings_files
from ...formats import requests, wire
from ...formats.addresses import is_remote
from ...formats.errors import TfprofError
from ...formats.requests import Reply, Request
from ...formats.wire import Head
from ..transport.message_queue import Send, encode

#: Maximum number of commands at a time.
RUNNING_MAX: Final = 4
#: Time for sending a reply (seconds).
SEND_S: Final = 10.0
#: Maximum size of the output, which may double in JSON, and of the last messages (bytes).
_OUTPUT_MAX: Final = requests.REPLY_MAX // 4
_ERRORS_MAX: Final = 4096
_READ_BYTES: Final = 1 << 16


@dataclass(slots=True)
class _Running:
    """A command: its end at the latest, what it has printed, and the reply, once it is known."""

    process: "subprocess.Popen[bytes]"
    request: Request
    deadline_s: float
    output: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)
    failure: TfprofError | None = None
    reply: Reply | None = None


class NodeRequests:
    """The requests to one agent; `take` accepts one, `check` looks at all of them in each turn.

    ``refusal`` returns the reason why a request is refused now, None if it is obeyed.
    """

    def __init__(self, store: str, send: Send, refusal: Callable[[Request], TfprofError | None]) -> None:
        self._store = store
        self._send = send
        self._refusal = refusal
        self._running: dict[int, _Running] = {}

    @property
    def has_pending(self) -> bool:
        """Whether any command runs, or a reply waits."""
        return bool(self._running)

    def take(self, head: Head, body: Mapping[str, Any], now: float) -> None:
        """Start or refuse the command of request ``head.last``. Ignore a repeated request."""
        if head.last in self._running:
            return
        try:
            request = requests.request_of(body)
            refusal = self._refusal(request)
            if refusal is None and len(self._running) >= RUNNING_MAX:
                refusal = TfprofError(f"the agent runs {RUNNING_MAX} commands already: try again", "agent-busy")
            if refusal is not None:
                raise refusal
            process = _start(request, self._store)
        except TfprofError as error:
            self._put(head.last, _refused(error))
        except OSError as error:
            text = f"`tfprof {request.command}` cannot be started there: {error.strerror}"
            self._put(head.last, _refused(TfprofError(text, "io")))
        else:
            self._running[head.last] = _Running(process, request, now + requests.LIMITS_S[request.command])

    def check(self, now: float) -> None:
        """Read what the commands print, and send the replies of those that have ended."""
        for number, running in list(self._running.items()):
            if running.reply is None:
                self._check_process(running, now)
            if running.reply is not None and (self._put(number, running.reply) or now > running.deadline_s):
                del self._running[number]

    def close(self) -> None:
        """End the commands."""
        for running in self._running.values():
            if running.reply is None:
                running.process.terminate()
                _close(running.process)

    def _check_process(self, running: _Running, now: float) -> None:
        status = running.process.poll()
        _read(running.process.stdout, running.output, _OUTPUT_MAX + 1)
        _read(running.process.stderr, running.errors, 0)
        if status is not None:
            _close(running.process)
            running.reply = _reply(running, status)
            running.deadline_s = now + SEND_S
        elif running.failure is None and len(running.output) > _OUTPUT_MAX:
            self._end(running, _too_large(running.request), now)
        elif now > running.deadline_s:
            if running.failure is not None:
                running.process.kill()
            limit_s = requests.LIMITS_S[running.request.command]
            text = f"`tfprof {running.request.command}` did not end there within {limit_s:g} s"
            self._end(running, running.failure or TfprofError(text, "command-timeout"), now)

    @staticmethod
    def _end(running: _Running, failure: TfprofError, now: float) -> None:
        running.failure, running.deadline_s = failure, now + requests.END_S
        running.process.terminate()

    def _put(self, number: int, reply: Reply) -> bool:
        body = encode(reply.document())
        if len(body) > requests.REPLY_MAX:  # odd characters take several bytes each
            body = encode(Reply(slug="reply-too-large", text="the command prints too much there").document())
        return self._send(Head(wire.REPLY, 0, wire.ASK, 0, number), body)


def _start(request: Request, store: str) -> "subprocess.Popen[bytes]":
    """Start the command of ``request``; OSError if that fails."""
    environment = daemons.daemon_environment(settings_files.without_file_values(os.environ))
    environment["TFPROF_COLLECTOR" if is_remote(store) else "TFPROF_STORE"] = store
    process = subprocess.Popen(
        daemons.isolated_command("tfprof", request.arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
    return process


def _read(pipe: Any, kept: bytearray, size_max: int) -> None:
    """Read what is there, and keep the first ``size_max`` bytes, with 0 the last _ERRORS_MAX."""
    with contextlib.suppress(BlockingIOError):
        while data := os.read(pipe.fileno(), _READ_BYTES):
            kept += data[: size_max - len(kept)] if size_max else data
            if not size_max:
                del kept[:-_ERRORS_MAX]
            elif len(kept) >= size_max:
                return


def _close(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()


def _reply(running: _Running, status: int) -> Reply:
    failure = running.failure
    if failure is None and len(running.output) > _OUTPUT_MAX:
        failure = _too_large(running.request)
    if failure is not None:
        return _refused(failure)
    errors = running.errors.decode("utf-8", "replace")
    output = running.output.decode("utf-8", "replace")
    with contextlib.suppress(ValueError):  # without the layout, which could make it too large
        output = json.dumps(json.loads(output), separators=(",", ":"))
    return Reply(status if 0 <= status <= 255 else 1, output, errors)


def _too_large(request: Request) -> TfprofError:
    return TfprofError(f"`tfprof {request.command}` prints more than {_OUTPUT_MAX:,} bytes there", "reply-too-large")


def _refused(error: TfprofError) -> Reply:
    return Reply(slug=error.slug, text=str(error.args[0]))
