"""A process in the job's process group that records which signals the whole group gets.

The job has received these signals, too, so the launcher does not forward them. When the launcher is
killed, the witness kills the job: `kill -9` of the launcher has the effect of `kill -9` of the job.
It then has the job's channels open, as the launcher had, until their last state is written down.
When the launcher has stopped because the job was stopped, the witness continues the launcher as
soon as the job runs again.
"""

import contextlib
import os
import select
import signal
import struct
import time
from collections.abc import Callable, Iterator
from typing import Final, NoReturn, TypeAlias

from ...commands import descriptors
from .. import processes

#: Time limit of an answer (seconds). A witness that exceeds it may be stopped, so it gets SIGCONT.
ANSWER_TIMEOUT_S: Final = 0.2
#: Further time for an answer on a loaded machine (seconds).
EXTRA_TIMEOUT_S: Final = 2.0
#: Poll interval of a stopped job (seconds).
STOPPED_POLL_S: Final = 0.1
#: Time limit for the end of the killed job (seconds), and the poll interval.
END_TIMEOUT_S: Final = 2.0
END_POLL_S: Final = 0.01
_ALL_SIGNALS: Final = signal.valid_signals()
#: Requests to the witness: a numbered question, the job's pid, a signal that the job got, a stop of
#: the launcher, the end of that stop, dismissal.
_QUESTION, _JOB, _RECEIVED, _STOP, _CONTINUED, _LEAVE = b"?", b"J", b"R", b"S", b"C", b"."
_REQUEST: Final = struct.Struct("<cI")
#: Head of an answer: the number of the question (0 if the request was the job's pid), and how many
#: signals follow, a byte each.
_ANSWER: Final = struct.Struct("<II")

OnOrphaned: TypeAlias = Callable[[int, list[int]], object]


class Witness:
    """A witness: a child of this process, connected by two pipes.

    The witness calls ``on_orphaned`` with the job's pid and descriptors of the job's channels after
    it has killed the job.
    """

    def __init__(self, on_orphaned: OnOrphaned) -> None:
        """Start the witness; OSError if it cannot be forked or gets no pipes."""
        self._on_orphaned = on_orphaned
        self._start()

    def _start(self) -> None:
        pipes: list[int] = []
        try:
            for _ in ("requests", "replies"):
                pipes += os.pipe()
            pid = os.fork()
        except OSError:
            for fd in pipes:
                os.close(fd)
            raise
        request_reader, request_writer, reply_reader, reply_writer = pipes
        if pid == 0:
            _serve(request_reader, reply_writer, self._on_orphaned)
        os.close(request_reader)
        os.close(reply_writer)
        self.pid, self._request_fd, self._reply_fd = pid, request_writer, reply_reader
        self._question_number, self._unparsed = 0, b""

    def replace_if_ended(self, job: int) -> None:
        """Start another witness of process ``job`` if this one has ended, killed for example."""
        with contextlib.suppress(ChildProcessError):  # an earlier attempt has found its end
            if not os.waitpid(self.pid, os.WNOHANG)[0]:
                return
        old_fds = self._request_fd, self._reply_fd
        with contextlib.suppress(OSError):  # tried again later
            self._start()
            for fd in old_fds:
                os.close(fd)
            os.write(self._request_fd, _REQUEST.pack(_JOB, job))
            self._read_answer()

    def announce_job(self) -> None:
        """Register this process as the job; called in the child before it executes the command.

        All signals are blocked here, and the launcher waits. The witness forgets the signals that
        came before this process existed.
        """
        try:
            os.write(self._request_fd, _REQUEST.pack(_JOB, os.getpid()))
            if self._read_answer() is not None:
                _pass_barrier()
                for number in signal.sigpending():
                    os.write(self._request_fd, _REQUEST.pack(_RECEIVED, number))
        except OSError:
            # The witness has ended: the job runs without one. The kernel has sent SIGPIPE, which
            # is blocked and pending. SIGPIPE would end the job.
            signal.sigtimedwait({signal.SIGPIPE}, 0)

    def signals(self) -> list[int] | None:
        """Return the signals that the witness got since the last call; None without an answer.

        All signals to the group that have reached this process and the job are included.
        """
        _pass_barrier()
        self._question_number += 1
        try:
            os.write(self._request_fd, _REQUEST.pack(_QUESTION, self._question_number))
            return self._read_answer()
        except OSError:  # the witness has ended
            return None

    def _read_answer(self) -> list[int] | None:
        signals: list[int] = []
        while True:
            while len(self._unparsed) < _ANSWER.size or len(self._unparsed) < _ANSWER.size + self._length():
                if not self._has_reply():
                    return None
                data = os.read(self._reply_fd, 1 << 16)
                if not data:
                    return None
                self._unparsed += data
            number, length = _ANSWER.unpack_from(self._unparsed)
            signals += self._unparsed[_ANSWER.size : _ANSWER.size + length]
            self._unparsed = self._unparsed[_ANSWER.size + length :]
            if number == self._question_number:
                return signals

    def _has_reply(self) -> bool:
        poll = select.poll()
        poll.register(self._reply_fd, select.POLLIN)
        if poll.poll(1000 * ANSWER_TIMEOUT_S):
            return True
        os.kill(self.pid, signal.SIGCONT)
        return bool(poll.poll(1000 * EXTRA_TIMEOUT_S))

    def _length(self) -> int:
        return int(_ANSWER.unpack_from(self._unparsed)[1])

    @contextlib.contextmanager
    def stopping(self) -> Iterator[None]:
        """Return a context for a stop of this process.

        The witness continues the process when the job runs again, or has ended.
        """
        self._send(_STOP)
        yield
        self._send(_CONTINUED)

    def _send(self, kind: bytes) -> None:
        with contextlib.suppress(OSError):  # the witness has ended
            os.write(self._request_fd, _REQUEST.pack(kind, 0))

    def dismiss(self) -> None:
        """End the witness after the job."""
        with contextlib.suppress(OSError):
            os.write(self._request_fd, _REQUEST.pack(_LEAVE, 0))
            os.kill(self.pid, signal.SIGCONT)
        os.close(self._request_fd)
        os.close(self._reply_fd)
        with contextlib.suppress(ChildProcessError):  # it had ended, and could not be replaced
            os.waitpid(self.pid, 0)


class NoWitness:
    """Stands for a witness that could not be started."""

    pid = -1  # no signal is of it; 0 is a sender outside of this pid namespace

    def announce_job(self) -> None:
        """Do nothing."""

    def signals(self) -> None:
        """Return None: which signals the group got is unknown."""

    def replace_if_ended(self, job: int) -> None:
        """Do nothing."""

    def stopping(self) -> contextlib.AbstractContextManager[None]:
        """Return a context that does nothing."""
        return contextlib.nullcontext()

    def dismiss(self) -> None:
        """Do nothing."""


def _pass_barrier() -> None:
    """Return when no signal to the group is still being delivered."""
    try:
        # This changes nothing, but it waits for the lock under which the kernel signals a group.
        os.setpgid(0, os.getpgrp())
    except OSError:
        return  # a session leader gets an error, but it has waited, too


def begin(on_orphaned: OnOrphaned) -> Witness | NoWitness:
    """Start a witness and return it; NoWitness if it cannot be forked or gets no pipes."""
    try:
        return Witness(on_orphaned)
    except OSError:
        return NoWitness()


def _serve(request_fd: int, reply_fd: int, on_orphaned: OnOrphaned) -> NoReturn:
    """Run as the witness until dismissed or orphaned."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _ALL_SIGNALS)
        _keep_only(request_fd, reply_fd)
        launcher = os.getppid()
        job: processes.Process | None = None
        early_signals: list[int] = []
        job_signals: list[int] = []
        while request := os.read(request_fd, _REQUEST.size):
            kind, number = _REQUEST.unpack(request)
            if kind == _LEAVE:
                os._exit(0)
            if kind == _JOB:
                job, early_signals = processes.process(number), _take_signals(launcher)
                os.write(reply_fd, _packed_answer(0, []))
            elif kind == _RECEIVED:
                job_signals += (signal_number for signal_number in early_signals if signal_number == number)
            elif kind == _STOP:
                _watch_stopped_launcher(request_fd, processes.process(launcher), job)
            elif kind == _QUESTION:
                os.write(reply_fd, _packed_answer(number, job_signals + _take_signals(launcher)))
                job_signals = []
        if job is not None and job.is_alive:
            channel_fds = _open_channels(job.pid)
            os.kill(job.pid, signal.SIGKILL)
            deadline = time.monotonic() + END_TIMEOUT_S
            while job.is_alive and time.monotonic() < deadline:
                time.sleep(END_POLL_S)
            on_orphaned(job.pid, channel_fds)
    finally:
        os._exit(0)


def _open_channels(job: int) -> list[int]:
    """Return descriptors of the channels of process ``job``, without those that do not open."""
    fds = []
    for path in processes.channels_of(job).values():
        with contextlib.suppress(OSError):
            fds.append(os.open(path, os.O_RDONLY))
    return fds


def _watch_stopped_launcher(request_fd: int, launcher: processes.Process | None, job: processes.Process | None) -> None:
    """Continue the stopped launcher when the job is no longer stopped.

    Return at the next request.
    """
    poll = select.poll()
    poll.register(request_fd, select.POLLIN)
    while not poll.poll(1000 * STOPPED_POLL_S):
        if launcher is not None and launcher.is_stopped and not (job is not None and job.is_stopped):
            os.kill(launcher.pid, signal.SIGCONT)


def _take_signals(launcher: int) -> list[int]:
    """Return the signals that came since the last call, without those of the launcher."""
    signals = []
    while (info := signal.sigtimedwait(_ALL_SIGNALS, 0)) is not None:
        if info.si_pid != launcher:
            signals.append(info.si_signo)
    return signals


def _packed_answer(number: int, signals: list[int]) -> bytes:
    return _ANSWER.pack(number, len(signals)) + bytes(signals)


def _keep_only(*kept_fds: int) -> None:
    """Close all descriptors except ``kept_fds``.

    Otherwise the readers of inherited pipes would not see the end of these pipes.
    """
    null_fd = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null_fd, fd)
    descriptors.close_all_except(*kept_fds)
