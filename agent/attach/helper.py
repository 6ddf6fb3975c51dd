"""Starts the short-lived helper process that attaches, and reads its answer."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ...commands import daemons
from ..processes import Process
from .errors import AttachError
from .identities import RequestHandler
from .inject import METHODS
from .payload import ShimAnswer

_HELPER: Final = "tfprof.agent.attach.__main__"
#: Time limit of the helper (seconds), longer than the helper's own limits for the work in the job.
_TIMEOUT_S: Final = 120.0
#: Time limit for the end of the helper after SIGTERM (seconds).
_END_S: Final = 5.0


class InjectionResult(NamedTuple):
    """The result of an injection.

    Its fields are the method, the time for which the main thread was stopped (ns), and the shim's
    answer.
    """

    method: str
    stopped_ns: int
    answer: ShimAnswer


#: The handler that answers requests in place of the helper; empty until `set_request_handler`.
_request_handler: list[RequestHandler] = []


def set_request_handler(handler: RequestHandler) -> None:
    """Send requests to ``handler`` from now on, instead of starting a helper for each."""
    _request_handler[:] = [handler]


def arm(process: Process, environ: Mapping[str, str], methods: tuple[str, ...] = METHODS) -> InjectionResult:
    """Arm the shim in ``process`` with the settings in ``environ``; AttachError if that fails."""
    return _ask({"action": "arm", "environ": dict(environ)}, process, methods)


def disarm(process: Process, methods: tuple[str, ...] = METHODS) -> InjectionResult:
    """Disarm the shim in ``process``; AttachError if that fails."""
    return _ask({"action": "disarm"}, process, methods)


def _ask(request: dict[str, Any], process: Process, methods: tuple[str, ...]) -> InjectionResult:
    full_request = {**request, "pid": process.pid, "started": process.started, "methods": methods}
    answer = (_request_handler or [answer_by_subprocess])[0](full_request)
    if "slug" in answer:
        raise AttachError(answer["text"], answer["slug"])
    return InjectionResult(answer["method"], answer["stopped_ns"], ShimAnswer(**answer["shim"]))


def answer_by_subprocess(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a new helper process to ``request``."""
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(
            daemons.isolated_command(_HELPER, []),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,  # Ctrl-C reaches only this process, which then sends SIGTERM to the helper
        ) as helper:
            try:
                output, errors = helper.communicate(json.dumps(request), _TIMEOUT_S)
            finally:
                _end(helper)
    except (OSError, subprocess.TimeoutExpired) as error:
        return _failure(str(error))
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        last_line = errors.splitlines()[-1:] or [f"it ended with status {helper.returncode} and no answer"]
        return _failure(last_line[0])
    return answer


def _failure(reason: str) -> dict[str, Any]:
    return {"slug": "attach-failed", "text": f"the attaching process failed: {reason}"}


def _end(helper: "subprocess.Popen[str]") -> None:
    """End the helper if it still runs; at SIGTERM it withdraws its request from the job."""
    helper.terminate()
    try:
        helper.wait(_END_S)
    except subprocess.TimeoutExpired:
        helper.kill()
