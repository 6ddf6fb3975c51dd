"""Arms and disarms jobs in a short-lived helper process, or in one of root's."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..processes import Process
from .errors import AttachError
from .helper_process import HelperProcess, disarming_request, failure
from .identities import RequestHandler
from .inject import METHODS
from .payload import ShimAnswer

#: Time limit of the helper (seconds), longer than the helper's own limits for the work in the job.
_TIMEOUT_S: Final = 120.0


class InjectionResult(NamedTuple):
    """The result of an injection.

    Its fields are the method, the longest stop of the main thread (ns), and the shim's answer.
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
    request = {"action": "arm", "pid": process.pid, "started": process.started, "environ": dict(environ)}
    return _ask({**request, "methods": methods})


def disarm(process: Process, launch: int, methods: tuple[str, ...] = METHODS) -> InjectionResult:
    """Disarm the shim in ``process`` if ``launch`` armed it; AttachError if that fails."""
    return _ask({**disarming_request(process.pid, process.started, launch), "methods": methods})


def _ask(request: dict[str, Any]) -> InjectionResult:
    answer = (_request_handler or [answer_by_subprocess])[0](request)
    if "slug" in answer:
        raise AttachError(answer["text"], answer["slug"])
    return InjectionResult(answer["method"], answer["stopped_ns"], ShimAnswer(**answer["shim"]))


def answer_by_subprocess(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a new helper process to ``request``."""
    try:
        helper = HelperProcess(request)
    except OSError as error:
        return failure(str(error))
    try:
        return helper.answer(_TIMEOUT_S) or failure(f"it did not end within {_TIMEOUT_S:g} s")
    finally:
        helper.end()
