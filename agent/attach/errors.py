"""Errors of attaching."""

from ...formats.errors import TfprofError


class AttachError(TfprofError):
    """Attaching to a process failed."""

    slug = "attach-failed"


class RefusedError(AttachError):
    """A process is refused; nothing lasting was done to it."""

    slug = "not-attachable"


def stopped_error(pid: int) -> RefusedError:
    """Return the error for process ``pid``, which is stopped."""
    return RefusedError(
        f"it is stopped, by SIGSTOP or by a debugger: continue it first (kill -CONT {pid})", "job-stopped"
    )


class GoneError(AttachError):
    """The process ended during the attach, or executed another program."""

    slug = "process-gone"
