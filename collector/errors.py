"""The errors of the collector and its commands; docs/errors.md explains each slug."""

from ..formats.errors import FormatError, TfprofError, UsageError, VersionError

__all__ = [
    "DamagedJobError",
    "DecodeError",
    "FormatError",
    "NoSuchJobError",
    "NoSuchStepError",
    "RefusedOutputError",
    "StoreError",
    "TfprofError",
    "UsageError",
    "VersionError",
    "ViewOptionError",
]


class DecodeError(FormatError):
    """A record of a job does not parse, or exceeds a limit."""

    slug = "undecodable"


class StoreError(TfprofError):
    """The store cannot be read or written: missing, full, unwritable, in use, or damaged."""

    slug = "store"


class DamagedJobError(StoreError):
    """The job file of job ``uid`` (in hexadecimal) cannot be read."""

    def __init__(self, error: StoreError, uid: str) -> None:
        super().__init__(error.args[0], error.slug)
        self.uid = uid


class NoSuchJobError(TfprofError):
    """A job selector matches no job, or several."""

    slug = "no-such-job"


class ViewOptionError(UsageError):
    """A mistake in the options of a view; ``tf_message``: the TF profiler's message about it."""

    def __init__(self, message: str, tf_message: str = "") -> None:
        super().__init__(message)
        self.tf_message = tf_message or message


class RefusedOutputError(ViewOptionError):
    """The type in `-output` cannot show the view, or the selected columns, jobs or device."""


class NoSuchStepError(ViewOptionError):
    """No step of the selected numbers was traced."""

    slug = "no-such-step"
