"""Creates a process's channel, writes its hello page and announces it to the agent."""

from __future__ import annotations

import json
import os
import sys

from ...formats import layout, policy, settings
from ...formats.runtime_dir import ANNOUNCE
from .. import clock, core, guard
from ..descriptors import open_file, remove_file
from ..pacing.current_policy import CurrentPolicy
from . import spans
from .ring import Channel, ChannelError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Mapping

    from ..core import State

_FUNCTIONS_SIZE = len(', "functions": {}')  # bytes of an empty table of functions in the hello


def open_channel(state: State) -> None:
    """Open the channel and set it in ``state``; announce a refusal if that fails.

    If an exception of the job's interrupts this, nothing is left behind, and the next step tries
    again.
    """
    state.refused = True
    try:
        _open_channel(state)
    except BaseException as error:
        state.refused = state.put is None and not guard.raised_by_job(error)
        raise


def _open_channel(state: State) -> None:
    uid = int.from_bytes(os.urandom(8), "little") or 1
    channel = None
    try:
        channel = Channel(uid, state.launch, _ring_bytes(state.environ))
        guard.count_errors_in(channel)
        write_hello(channel, state)
        trace_policy, policy_error = _trace_policy(state.environ)
        threads = clock.ThreadId()
        put = spans.writer(channel, state.budgeted_kinds, threads)
        current_policy = CurrentPolicy(channel.words, trace_policy, channel.report, core.disarm, clock.mono())
        # ``put`` is set last: it shows that there is a channel.
        state.channel, state.current_policy, state.threads, state.put = channel, current_policy, threads, put
    except ChannelError as error:
        announce(state.folder, state.pid, uid, "refused %s %s\n%016x\n" % (error.slug, error.args[0], state.launch))
        return
    except BaseException:
        if state.put is None:
            guard.count_errors_in(None)
            if channel is not None:
                channel.abandon()
        raise
    state.refused = False
    announce(state.folder, state.pid, uid, "channel\n%016x\n" % state.launch)
    if policy_error is not None:
        channel.report(policy_error.slug, policy_error.args[0])


@guard.guarded
def announce(folder: str, pid: int, uid: int, text: str) -> None:
    """Announce the channel, or its refusal, by a file with ``text`` that appears atomically."""
    name = "%d-%016x" % (pid, uid)
    announcements = os.path.join(folder, ANNOUNCE)
    draft = os.path.join(announcements, "." + name)
    fd = -1
    try:
        fd = open_file(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(fd, text.encode("utf-8", "replace"))
        draft_fd, fd = fd, -1  # never closed twice: another thread may get its number
        os.close(draft_fd)
        os.rename(draft, os.path.join(announcements, name))
    except BaseException as error:
        if fd >= 0:
            os.close(fd)
        remove_file(draft)
        # After an OSError, such as for a missing folder, the agent finds the channel all the same.
        if guard.raised_by_job(error) or not isinstance(error, OSError):
            raise


@guard.guarded
def write_hello(channel: Channel, state: State) -> None:
    """Write the hello page, with as many function names as fit."""
    framework = state.framework
    hello: dict[str, Any] = {
        "name": _program_name(),
        "argv0": (getattr(sys, "argv", None) or [""])[0],
        "python": "%d.%d.%d" % sys.version_info[:3],
        "framework": None if framework is None else framework.NAME,
        "framework_version": _framework_version(framework),
        "ppid": os.getppid(),
        "executable": sys.executable,
        "trace": settings.SETTINGS["trace"].read(state.environ),
    }
    data = json.dumps(hello).encode()
    while len(data) > layout.HELLO_MAX:
        longest = max(hello, key=lambda key: len(str(hello[key])))
        hello[longest] = hello[longest][: len(hello[longest]) // 2]
        data = json.dumps(hello).encode()
    if channel.names:
        from ..tensorflow.names import names_that_fit

        hello["functions"] = names_that_fit(channel.names, layout.HELLO_MAX - len(data) - _FUNCTIONS_SIZE)
        data = json.dumps(hello).encode()
    channel.write_hello(data)


def _framework_version(framework: ModuleType | None) -> Any:
    """Return the version of the job's framework, None as long as it is not loaded."""
    if framework is None:
        return None
    module, attribute = framework.VERSION
    return getattr(sys.modules.get(module), attribute, None)


def _program_name() -> str:
    """Return the name of the program: of its module if started with ``-m``, else of its script."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        name: str = spec.name
        return name[: -len(".__main__")] if name.endswith(".__main__") else name
    return os.path.basename((getattr(sys, "argv", None) or [""])[0]) or "python"


def _ring_bytes(environ: Mapping[str, str]) -> int:
    try:
        size: int = settings.SETTINGS["ring"].read(environ)
    except ValueError as error:
        if guard.raised_by_job(error):
            raise
        return layout.RING_DEFAULT
    return min(max(size, layout.RING_MIN), layout.RING_MAX)


def _trace_policy(environ: Mapping[str, str]) -> tuple[policy.Policy, policy.PolicyError | None]:
    """Return (policy, None), or the default policy and the error of an invalid text."""
    rows = settings.SETTINGS
    try:
        return policy.Policy.from_text(rows["trace"].read(environ), rows["trace-level"].read(environ)), None
    except policy.PolicyError as error:
        return policy.DEFAULT, error
