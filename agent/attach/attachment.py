"""One attached job: its launch, its channel, and detaching."""

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ...formats import runtime_dir
from ...formats.ids import hex_id
from .. import control, daemon_start, launches, processes
from ..channels import ChannelReader, open_file
from ..launches import Launch, Result
from ..processes import Process
from ..rings import InvalidChannelError
from . import helper, maps, targets
from .errors import AttachError, GoneError, RefusedError
from .inject import METHODS
from .payload import ShimAnswer

#: The method for a job that already has a channel: nothing is injected.
CHANNEL: Final = "channel"
ALL_METHODS: Final = (CHANNEL, *METHODS)
#: Slugs of errors after which there is nothing to disarm. After a long wait, an attempt would wait
#: as long again.
_UNCHANGED: Final = (
    "already-profiled",
    "attach-busy",
    "attach-unanswered",
    "holds-gil",
    "job-stopped",
    "no-new-code",
    "no-remote-debugging",
    "other-user",
    "process-gone",
    "traceback-timer",
)
#: Time limit for a new channel (seconds).
CHANNEL_TIMEOUT_S: Final = 5.0
#: Time limit for a found channel to become valid (seconds).
CREATED_TIMEOUT_S: Final = 1.0
#: Time limit for the end of TensorFlow's import (seconds).
LOADING_TIMEOUT_S: Final = 20.0
#: Time limit for the agent to find the channel (seconds).
FOUND_TIMEOUT_S: Final = 3.0
#: Time limit for storing a job's data (seconds).
STORED_TIMEOUT_S: Final = 60.0
#: Time limit for the step at which a job detaches (seconds).
DETACH_TIMEOUT_S: Final = 1.0
#: Poll interval of these waits (seconds).
POLL_S: Final = 0.05


class AttachOptions(NamedTuple):
    """How to attach: store, name of the job, settings of the job by variable, methods to try.

    ``records_command``: the job's command line is stored, too.
    """

    store: str
    name: str | None = None
    settings: Mapping[str, str] = {}
    methods: tuple[str, ...] = ALL_METHODS
    records_command: bool = False


class Attachment:
    """A job that is profiled until `detach`."""

    def __init__(self, options: AttachOptions, process: Process) -> None:
        self.process = process
        self._options = options
        channel = _channel(process)
        refusal = None if channel is not None else targets.refusal_of(process.pid)
        if refusal is not None:
            raise refusal
        self._instance_dir = runtime_dir.make_instance(options.store)
        self._supervisor = daemon_start.DaemonSupervisor(self._instance_dir, options.store, daemon_start.AGENT)
        self._launch: Launch | None = None
        self.method, self.stopped_ns = CHANNEL, 0
        self.is_open = True  # until `end`
        self.channel = self._open_channel(channel)

    def _open_channel(self, channel: ChannelReader | None) -> ChannelReader:
        methods = tuple(name for name in self._options.methods if name in METHODS)
        if channel is not None:
            if CHANNEL not in self._options.methods:
                channel.close()
                raise _already_profiled()
            return channel
        if not methods:
            raise RefusedError("it has no channel", "no-channel-there")
        self._launch = launch = self._make_launch()
        try:
            self.ensure_agent()
        except BaseException:
            self.close_launch()
            raise
        try:
            answer = self._arm(launch, methods)
            new_channel = self._new_channel(answer)
        except BaseException as error:  # also KeyboardInterrupt
            if not (isinstance(error, AttachError) and error.slug in _UNCHANGED):
                with contextlib.suppress(AttachError):
                    helper.disarm(self.process, launch.launch, methods)
            self.close_launch()
            raise
        if answer.before:
            self.close_launch()
            self._launch = None
        else:
            self._announce(new_channel)
        return new_channel

    def _arm(self, launch: Launch, methods: tuple[str, ...]) -> ShimAnswer:
        """Arm the process, unless another tfprof has just done so."""
        environ = {**self._options.settings, "TFPROF_RUN": launches.run_of(self._instance_dir, launch)}
        result = helper.arm(self.process, environ, methods)
        if not result.answer.before:
            self.method, self.stopped_ns = result.method, result.stopped_ns
        elif CHANNEL not in self._options.methods:
            raise _already_profiled()
        return result.answer

    def _make_launch(self) -> Launch:
        pid = self.process.pid
        command = targets.command_of(pid) if self._options.records_command else None
        launch = launches.new(self._options.store, self._options.name, command, pid)
        launches.write(self._instance_dir, launch)
        return launch

    def _new_channel(self, answer: ShimAnswer) -> ChannelReader:
        if not answer.armed:
            raise RefusedError(targets.SETUID, "set-uid")
        if answer.refused:
            raise AttachError("the process cannot create a channel: it gets no memory for it", "channel-memory")
        if answer.before and answer.loaded and not answer.channel:  # a forked child without a step
            raise _already_profiled(": its next step opens its channel")
        # A process that is armed and maps TensorFlow, but has no channel, is still importing it.
        timeout_s = CHANNEL_TIMEOUT_S if answer.channel else LOADING_TIMEOUT_S if self._maps_tensorflow() else 0
        deadline = time.monotonic() + timeout_s
        while self.process.is_alive and time.monotonic() < deadline:
            channel = _channel(self.process)
            if channel is not None:
                return channel
            time.sleep(POLL_S)
        if not self.process.is_alive:
            raise GoneError(f"process {self.process.pid} ended meanwhile")
        if self._maps_tensorflow():
            raise AttachError("its main interpreter has not imported TensorFlow", "no-tensorflow")
        raise AttachError("it has not loaded TensorFlow", "no-tensorflow")

    def _maps_tensorflow(self) -> bool:
        try:
            return maps.has_tensorflow(self.process.pid)
        except OSError:
            return False

    def _announce(self, channel: ChannelReader) -> None:
        """Announce a channel for its process, which may not see the folder of announcements."""
        name = f"{self.process.pid}-{hex_id(channel.identity.uid)}"
        with contextlib.suppress(OSError):  # the process has announced it
            fd = os.open(
                os.path.join(self._instance_dir, runtime_dir.ANNOUNCE, name),
                os.O_WRONLY | os.O_CREAT | os.O_EXCL,
                0o600,
            )
            with os.fdopen(fd, "wb") as file:
                file.write(b"channel\n")

    @property
    def launch(self) -> int:
        """The number of the launch that the job's channel belongs to."""
        return self._launch.launch if self._launch is not None else self.channel.identity.launch

    @property
    def is_alive(self) -> bool:
        """Whether the job runs with this channel."""
        return self.is_open and self.process.is_alive and not self.channel.word("detached")

    def ensure_agent(self, *, again: bool = False) -> None:
        """Start the agent if none runs; DaemonError if that fails.

        ``again``: it stays stopped if a user stopped it.
        """
        if not (again and self._supervisor.was_stopped):
            self._supervisor.ensure_running()

    @property
    def is_ours(self) -> bool:
        """Whether this attachment started the profiling of the job."""
        return self._launch is not None

    def detach(self) -> None:
        """Disarm the shim in the job, at its next step or directly; AttachError if that fails."""
        # The agent learns from an open descriptor which process a channel belongs to. So it must
        # find the channel before the process closes the descriptor.
        self._wait(lambda: bool(self.channel.word("agent_pid")), FOUND_TIMEOUT_S)
        self.order_detach()
        self._wait(lambda: False, DETACH_TIMEOUT_S)
        if self.is_alive:
            helper.disarm(self.process, self.launch)

    def order_detach(self) -> None:
        """Make the job disarm the shim at its next step."""
        control.detach(self.channel)

    def _wait(self, condition: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while self.is_alive and not condition() and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def end(self) -> None:
        """Close the channel and the launch; the agent still stores the recorded data."""
        self.is_open = False
        self.channel.close()
        self.close_launch()

    def close_launch(self) -> None:
        """End the launch; `wait_stored` waits for the result, which the agent then writes."""
        if self._launch is not None and not self._launch.ended_ns:
            self._launch = self._launch._replace(ended_ns=time.time_ns())
            with contextlib.suppress(OSError):
                launches.write(self._instance_dir, self._launch)

    def wait_stored(self) -> Result | None:
        """Wait until the ended launch is stored; return the agent's result, None without one."""
        deadline = time.monotonic() + STORED_TIMEOUT_S
        result = None
        while time.monotonic() < deadline:
            self.ensure_agent()
            result = launches.read_result(self._instance_dir, self.launch)
            if result is not None and result.complete:
                break
            time.sleep(POLL_S)
        return result


def _already_profiled(remark: str = "") -> RefusedError:
    return RefusedError(f"it is already profiled{remark}", "already-profiled")


def _channel(process: Process) -> ChannelReader | None:
    """Return the channel of ``process``, None if it has none.

    A new channel is invalid until the process has filled it: FormatError if it stays invalid.
    """
    deadline = time.monotonic() + CREATED_TIMEOUT_S
    while True:
        try:
            return _valid_channel(process)
        except InvalidChannelError:
            if time.monotonic() > deadline:
                raise
        time.sleep(POLL_S)


def _valid_channel(process: Process) -> ChannelReader | None:
    for path in processes.channels_of(process.pid).values():
        try:
            fd = open_file(path, os.O_RDWR)
        except OSError:  # the process has ended, or has closed it
            continue
        channel = ChannelReader(fd)
        if channel.identity.pid == processes.ns_pid(process.pid) and not channel.word("detached"):
            return channel
        channel.close()
    return None
