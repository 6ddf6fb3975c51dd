"""Opens a process's channel: creates it, describes the process in it, and announces it."""

from __future__ import annotations

import json
import sys
from functools import partial
from types import ModuleType
from typing import Any, Callable, Mapping

from ..formats import activities, layout, policy, settings
from ..formats.runtime_dir import ANNOUNCE
from . import clock, guard
from .channel.ring import Channel, ChannelError
from .channel.spans import SpanWriter
from .descriptors import open_file
from .file_size_signal import without_signal
from .own_os import os
from .pacing.current_policy import CurrentPolicy
from .try_lock import TryLock

#: Maximum number of names, and their maximum length.
NAMES_MAX = 64 + activities.NAMES_MAX
LENGTH_MAX = 64


class Hello(object):
    """The hello page: what the process is, and the names of its functions and activities.

    Spans hold keys; the hello maps them to names. ``state`` is that of core.py. ``lock`` is held
    while the page is written.
    """

    def __init__(self, channel: Channel, state: Any) -> None:
        self._channel = channel
        self._state = state
        self._names: dict[int, str] = {}  # by span key
        self.lock = TryLock()

    @guard.guarded
    def write(self) -> None:
        """Write the page; forget the last names if they do not fit."""
        hello, kinds, names = _description(self._state), self._state.kinds, self._names
        data = _encoded(hello, kinds, names)
        while len(data) > layout.HELLO_MAX:
            if names:
                names.popitem()
            else:
                longest = max(hello, key=lambda key: len(str(hello[key])))
                hello[longest] = hello[longest][: len(hello[longest]) // 2]
            data = _encoded(hello, kinds, names)
        self._channel.write_hello(data)

    @guard.guarded
    def publish(self, key: int, name: str, published_keys: set[int]) -> int:
        """Publish ``name`` for ``key``, add the key to ``published_keys``, and return the ns spent.

        If another thread is publishing, return 0; a later step tries again. Beyond NAMES_MAX names,
        only the key is added.
        """
        start, hold = clock.mono(), self.lock.take()
        if hold is None:
            return 0
        try:
            published_keys.add(key)
            if len(self._names) < NAMES_MAX:
                self._names[key] = name[:LENGTH_MAX]
                self.write()
            return clock.mono() - start
        finally:
            del hold


def _encoded(hello: dict[str, Any], kinds: dict[int, Any], names: dict[int, str]) -> bytes:
    tables = {name: table for name, table in (("kinds", kinds), ("functions", names)) if table}
    return json.dumps(dict(hello, **tables), separators=(",", ":")).encode()


def open_channel(state: Any, detach: Callable[[], object]) -> None:
    """Open the channel and set it in ``state``, that of core.py; announce a refusal if that fails.

    An order to detach calls ``detach``. If an exception of the job's interrupts this, nothing is
    left behind, and the next step tries again.
    """
    state.refused = True
    uid = int.from_bytes(os.urandom(8), "little") or 1
    channel = None
    try:
        channel = Channel(uid, state.launch, _ring_bytes(state.environ))
        guard.count = channel.count_fault
        channel.hello = Hello(channel, state)
        channel.hello.write()
        trace_policy, policy_error = _trace_policy(state.environ)
        put = SpanWriter(channel, state.budgeted_kinds).put
        current_policy = CurrentPolicy(channel.words, trace_policy, channel.report, detach, clock.mono(), state.kinds)
        state.opened = channel, put, current_policy
    except ChannelError as error:
        announce(state, uid, "refused %s %s" % (error.slug, error.args[0]))
        return
    except BaseException as error:
        state.refused = state.opened is None and not guard.raised_by_job(error)
        if state.opened is None:
            guard.count = None
            if channel is not None:
                channel.abandon()
        raise
    state.refused = False
    announce(state, uid, "channel")
    if policy_error is not None:
        channel.report(policy_error.slug, policy_error.args[0])
    for text in state.missing:  # in a forked child, whose parent patched the modules
        channel.report("patch-missing", text)


@guard.guarded
def announce(state: Any, uid: int, text: str) -> None:
    """Announce the channel, or its refusal, by a file with ``text`` that appears atomically."""
    name = "%d-%016x" % (clock.getpid(), uid)
    data = "%s\n%016x\n" % (text, state.launch)
    announcements = os.path.join(state.folder, ANNOUNCE)
    draft = os.path.join(announcements, "." + name)
    fd = -1
    try:
        fd = open_file(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        without_signal(partial(os.write, fd, data.encode("utf-8", "replace")))
        draft_fd, fd = fd, -1  # never closed twice: another thread may get its number
        os.close(draft_fd)
        os.rename(draft, os.path.join(announcements, name))
    except BaseException as error:
        if fd >= 0:
            os.close(fd)
        guard.attempt(OSError, os.unlink, draft)
        # After an OSError, such as for a missing folder, the agent finds the channel all the same.
        if guard.raised_by_job(error) or not isinstance(error, OSError):
            raise


def _description(state: Any) -> dict[str, Any]:
    frameworks = [(framework.NAME, version_of(framework)) for framework in state.loaded_frameworks]
    name, version = frameworks[0] if frameworks else (None, None)
    return {
        "name": _program_name(),
        "argv0": str((getattr(sys, "argv", None) or [""])[0]),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "framework": name,
        "framework_version": version,
        "ppid": os.getppid(),
        "executable": sys.executable,
        "trace": settings.SETTINGS["trace"].read(state.environ),
    }


def version_of(framework: ModuleType) -> Any:
    """Return the version of a framework, None as long as it is not loaded."""
    module, attribute = framework.VERSION
    return getattr(sys.modules.get(module), attribute, None)


def _program_name() -> str:
    """Return the name of the program: of its module if started with ``-m``, else of its script."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        name: str = spec.name
        return name[: -len(".__main__")] if name.endswith(".__main__") else name
    return os.path.basename(str((getattr(sys, "argv", None) or [""])[0])) or "python"


def _ring_bytes(environ: Mapping[str, str]) -> int:
    size: int | None = guard.attempt(ValueError, settings.SETTINGS["ring"].read, environ)
    return layout.RING_DEFAULT if size is None else min(max(size, layout.RING_MIN), layout.RING_MAX)


def _trace_policy(environ: Mapping[str, str]) -> tuple[policy.Policy, policy.PolicyError | None]:
    """Return (policy, None), or the default policy and the error of an invalid text."""
    rows = settings.SETTINGS
    try:
        return policy.Policy.from_text(rows["trace"].read(environ), rows["trace-level"].read(environ)), None
    except policy.PolicyError as error:
        return policy.DEFAULT, error
