"""Errors of attaching."""

from ...formats.errors import TfprofError


class AttachError(TfprofError):
    """Attaching to a process failed."""

    slug = "attach-failed"


class RefusedError(AttachError):
    """A process is refused; nothing lasting was done to it."""

    slug = "not-attachable"


class GoneError(AttachError):
    """The process ended during the attach, or executed another program."""

    slug = "process-gone"
