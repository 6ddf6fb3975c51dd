"""Keeps the lines that TensorFlow logs about our own profiler sessions off the job's standard error.

Where all devices are CPUs a thread of ours gets a table of file descriptors to itself, in which standard error is the null
device: nothing that another thread writes is touched. A device's driver may open descriptors of its own in the calls we
make, which all threads must see; there the log level is raised for the length of the call instead.
"""

from __future__ import annotations

import ctypes
import os
import sys

from . import native
from .guard import theirs

_CLOSE_RANGE, _UNSHARE_ON_CLOSE = 436, 2
_CLONE_FILES = 0x400
_LAST_FD = 0xFFFFFFFF
_CONTEXT = "tensorflow.python.eager.context"
_CPUS = ("CPU", "XLA_CPU")
#: Releases of the logging library that TensorFlow has been built with; its names carry them.
_RELEASES = ("20250814", "20250512", "20250127", "20240722", "20240116", "20230802", "20230125")
_SET, _GET = "_ZN4absl12lts_%s14SetMinLogLevelENS0_18LogSeverityAtLeastE", "_ZN4absl12lts_%s11MinLogLevelEv"
_WARNING = 1


class NoisyError(Exception):
    """Nothing can keep the lines away: there is to be no profiler session."""


class Silent(object):
    """Around calls of a thread that has no standard error: nothing to do."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_error: object) -> None:
        pass


class Muted(object):
    """Raises the log level of the process to warnings while it is entered."""

    def __init__(self) -> None:
        library = native.library()
        if library is None:
            raise NoisyError("%s is not loaded" % native.LIBRARY)
        for release in _RELEASES:
            if hasattr(library, _SET % release):
                self._set, self._get = getattr(library, _SET % release), getattr(library, _GET % release)
                return
        raise NoisyError("this TensorFlow has no log level that can be changed")

    def __enter__(self) -> None:
        self._old = self._get()
        self._set(max(self._old, _WARNING))

    def __exit__(self, *_error: object) -> None:
        self._set(self._old)


def silence() -> Muted | Silent:
    """Return what to put around noisy calls in the calling thread, which is ours; NoisyError when nothing helps."""
    if accelerated():
        return Muted()
    try:
        private_descriptors()
    except OSError as error:
        if theirs(error):
            raise
        raise NoisyError("no descriptors of our own: %s" % error.strerror) from None
    return Silent()


def accelerated() -> bool:
    """Tell whether TensorFlow uses any device that is no CPU."""
    devices = sys.modules[_CONTEXT].context()._logical_devices
    return any(device.device_type not in _CPUS for device in devices or ())


def private_descriptors() -> None:
    """Give the calling thread descriptors of its own: the null device as 0, 1, 2, and none of the job's; OSError if refused."""
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = [ctypes.c_ulong(number) for number in (3, _LAST_FD, _UNSHARE_ON_CLOSE)]
    if libc.syscall(ctypes.c_long(_CLOSE_RANGE), *numbers) != 0:
        if libc.unshare(_CLONE_FILES) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        _close_copies()
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)


def _close_copies() -> None:
    # A copy left open would keep a pipe of the job's from ending when the job closes it.
    for name in os.listdir("/proc/thread-self/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError as error:
                if theirs(error):
                    raise  # else it is the one of the listing itself
