"""The helper process that attaches: reads a JSON request on stdin and answers on stdout.

The kernel releases the job when this process ends, for whatever reason.
"""

import json
import signal
import sys
from typing import Any, Final

from ...formats.errors import TfprofError
from ..processes import Process
from . import payload, targets
from .errors import RefusedError
from .inject import METHODS, inject

_FORBIDDEN: Final = "the system forbids it; a container must be started with --cap-add=SYS_PTRACE"


def _work(request: dict[str, Any]) -> dict[str, Any]:
    if request["action"] == "arm":
        return payload.arming_work(request["environ"])
    return payload.disarming_work(request["launch"])


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Execute ``request`` and return its result, or slug and text of an error."""
    try:
        process = Process(request["pid"], request["started"])
        methods = tuple(request.get("methods", METHODS))
        result = inject(process, _work(request), methods, request.get("user_id"))
        shim_answer = payload.parse_answer(result.answer)
        return {"method": result.method, "stopped_ns": result.stopped_ns, "shim": shim_answer._asdict()}
    except TfprofError as error:
        return {"slug": error.slug, "text": error.args[0]}
    except (ProcessLookupError, FileNotFoundError):  # a file below /proc/PID
        return {"slug": "process-gone", "text": f"process {request['pid']} is gone"}
    except PermissionError:
        refusal = targets.refusal_of(request["pid"]) or RefusedError(_FORBIDDEN, "ptrace-forbidden")
        return {"slug": refusal.slug, "text": refusal.args[0]}
    except OSError as error:
        return {"slug": "attach-failed", "text": f"{error.filename or 'the process'}: {error.strerror}"}


def main() -> int:
    """Answer one request; at SIGTERM, withdraw it and return 1."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        print(json.dumps(answer(json.load(sys.stdin))))
    except KeyboardInterrupt:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
