"""Receives blocked signals one by one."""

import os
import select
import signal
import struct
from typing import Final, NamedTuple

#: Every signal except those that cannot be blocked.
BLOCKABLE_SIGNALS: Final = frozenset(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
#: SFD_CLOEXEC and SFD_NONBLOCK of <sys/signalfd.h> equal the flags of open.
_FLAGS: Final = os.O_CLOEXEC | os.O_NONBLOCK
#: The first fields of a signalfd_siginfo: signo, errno, code, pid, uid, fd, tid, band, overrun,
#: trapno, status, int, ptr.
_RECORD: Final = struct.Struct("=IiiIIiIIIIiiQ")
_SIZE: Final = 128


class Signal(NamedTuple):
    """A signal: number, si_code, sender's pid if any, and attached value."""

    number: int
    code: int = 0
    pid: int = 0
    value: int = 0


class SignalReceiver:
    """The pending signals of this process.

    They are read from a signalfd. Python's sigtimedwait returns uninitialized memory when the
    process is stopped during the wait. So this class uses sigtimedwait only where there is no
    signalfd, and then filters invalid numbers.
    """

    def __init__(self) -> None:
        self._fd = _signal_fd()
        self._poll = select.poll()
        if self._fd is not None:
            self._poll.register(self._fd, select.POLLIN)

    def listen(self, fd: int) -> None:
        """Make ``next`` return also when ``fd`` is readable."""
        if fd >= 0:
            self._poll.register(fd, select.POLLIN)

    def forget(self, fd: int) -> None:
        """End `listen`, before ``fd`` is closed."""
        if fd >= 0:
            self._poll.unregister(fd)

    def next(self, seconds: float) -> Signal | None:
        """Return the next signal, None after ``seconds`` or when another descriptor is readable."""
        if self._fd is None:
            info = signal.sigtimedwait(BLOCKABLE_SIGNALS, max(0.0, seconds))
            is_valid = info is not None and info.si_signo in BLOCKABLE_SIGNALS
            return Signal(info.si_signo, info.si_code, info.si_pid, info.si_status) if info and is_valid else None
        if not self._poll.poll(1000 * max(0.0, seconds)):
            return None
        try:
            fields = _RECORD.unpack_from(os.read(self._fd, _SIZE))
        except BlockingIOError:
            # Only another descriptor is readable, or another signal discarded this one, as SIGCONT
            # discards stop signals.
            return None
        return Signal(fields[0], fields[2], fields[3], fields[12])


def _signal_fd() -> int | None:
    """Return a signalfd, None when Python lacks ctypes or the system refuses a signalfd."""
    try:
        import ctypes  # noqa: PLC0415 - imported only after the start of the job
    except ImportError:
        return None
    mask = sum(1 << (number - 1) for number in BLOCKABLE_SIGNALS).to_bytes(128, "little")
    fd = int(ctypes.CDLL(None).signalfd(-1, mask, _FLAGS))
    return fd if fd >= 0 else None
