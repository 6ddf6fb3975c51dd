"""The errors of the collector and its commands; docs/errors.md explains each slug."""

from collections.abc import Sequence

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


class RefusedOutputError(UsageError):
    """The type in `-output` cannot show the view, or the selected columns, jobs or device."""


class NoSuchStepError(UsageError):
    """The step was not traced; ``steps`` are the traced ones, ascending."""

    slug = "no-such-step"

    def __init__(self, message: str, steps: Sequence[int]) -> None:
        super().__init__(message)
        self.steps = tuple(steps)
