"""Lets root attach with the identity of the job's user.

Then root creates no files in that user's folders.
"""

import contextlib
import fcntl
import itertools
import json
import os
import pwd
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Final

from ...commands import daemons
from .. import identity
from .errors import RefusedError

#: Variables that locate the user's files. They are taken from a job that sees the host's files.
_FOLDER_VARIABLES: Final = ("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "TMPDIR", "TFPROF_STORE")
#: Asks a user namespace for the user who created it (<linux/nsfs.h>).
_NS_GET_OWNER_UID: Final = 0xB704
#: The runtime folder that a login creates.
_RUNTIME: Final = "/run/user/%d"
#: Variables of root that the child keeps: how to find programs and how to print.
_KEPT_VARIABLES: Final = ("PATH", "TERM", "COLUMNS", "LINES", "LANG", "LC_ALL", "NO_COLOR", "TZ", "TFPROF_DEBUG")

#: Files of this installation that the user's daemons need, each with the kind of access.
INSTALLATION: Final = ((sys.executable, os.X_OK), (daemons.ISOLATED, os.R_OK))

#: Signals that end the child, and this process after it.
_FORWARDED_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)

RequestHandler = Callable[[dict[str, Any]], dict[str, Any]]


def owner_of(pid: int) -> int | None:
    """Return the user of process ``pid``, None if it is gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def _is_container_user(pid: int, user_id: int) -> bool:
    """Return whether user ``user_id`` exists only in the container of process ``pid``.

    The process is then in a user namespace that another user created. A process of ``user_id``
    outside of that namespace has no rights there, and cannot open the job's channel.
    """
    namespace = f"/proc/{pid}/ns/user"
    try:
        if os.path.samefile(namespace, "/proc/self/ns/user"):
            return False
        fd = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            creator = fcntl.ioctl(fd, _NS_GET_OWNER_UID, bytes(4))
        finally:
            os.close(fd)
    except OSError:
        return False
    return int.from_bytes(creator, sys.byteorder) != user_id


def _needs_root(pid: int, user_id: int) -> bool:
    """Return whether no process of user ``user_id`` could open the channel of process ``pid``."""
    return _is_container_user(pid, user_id) or _is_closed_to_its_user(pid, user_id)


def _is_closed_to_its_user(pid: int, user_id: int) -> bool:
    """Return whether only root may open the memory and descriptors of process ``pid``.

    The process is then not dumpable, and `prctl(2)` says that its files below /proc are root's.
    """
    try:
        return os.stat(f"/proc/{pid}/mem").st_uid != user_id
    except OSError:
        return False


def user_to_become(pids: list[int]) -> int | None:
    """Return the user whose identity root takes on for ``pids``, None if that is not needed.

    RefusedError if they belong to several users.
    """
    if os.geteuid() != 0:
        return None
    owners = {0 if _needs_root(pid, owner) else owner for pid in pids if (owner := owner_of(pid)) is not None}
    if len(owners) > 1:
        raise RefusedError("they belong to several users: attach to processes of one user at a time", "several-users")
    return next(iter(owners - {0}), None)


def as_user(user_id: int, pid: int, work: Callable[[RequestHandler], int], answer: RequestHandler) -> int:
    """Run ``work`` with the identity of ``user_id`` in a forked child; return its exit status.

    The function returns in the child, too: the caller must end with this status.

    ``work`` gets a function that sends requests to this process, which still runs as root and calls
    ``answer`` for processes of that user only. ``pid`` is one of these processes: its environment
    locates the user's files. RefusedError in the child if this user cannot read the installation.
    """
    root_end, user_end = socket.socketpair()
    environ = _environment(pid, user_id)
    numbers = itertools.count(1)
    child = os.fork()
    if child == 0:
        root_end.close()
        _become(user_id, environ)
        _check_installation(user_id)
        return work(lambda request: _send_request(user_end, {**request, "number": next(numbers)}))
    user_end.close()
    with _signals_forwarded(child), root_end:
        _serve(root_end, user_id, answer)
        _, status = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(status)
    return status if status >= 0 else 128 - status


def _environment(pid: int, user_id: int) -> dict[str, str]:
    folders = _login_folders(user_id)
    if _sees_our_files(pid):
        job_environ = identity.environment_of(pid)
        folders |= {name: job_environ[name] for name in _FOLDER_VARIABLES if os.path.isabs(job_environ.get(name, ""))}
    return {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ} | folders


def _sees_our_files(pid: int) -> bool:
    """Return whether a path means the same file to process ``pid`` as here.

    In a container it does not.
    """
    try:
        return all(os.path.samefile(f"/proc/{pid}/{link}", f"/proc/self/{link}") for link in ("root", "ns/mnt"))
    except OSError:
        return False


def _login_folders(user_id: int) -> dict[str, str]:
    """Return the folders that a login gives the user."""
    folders = {}
    with contextlib.suppress(KeyError):
        folders["HOME"] = pwd.getpwuid(user_id).pw_dir
    runtime = _RUNTIME % user_id
    with contextlib.suppress(OSError):
        if os.stat(runtime).st_uid == user_id:
            folders["XDG_RUNTIME_DIR"] = runtime
    return folders


def _become(user_id: int, environ: Mapping[str, str]) -> None:
    try:
        account = pwd.getpwuid(user_id)
        groups, group = os.getgrouplist(account.pw_name, account.pw_gid), account.pw_gid
    except KeyError:
        groups, group = [], user_id
    os.setgroups(groups)
    os.setresgid(group, group, group)
    os.setresuid(user_id, user_id, user_id)
    os.environ.clear()
    os.environ.update(environ)


def _check_installation(user_id: int) -> None:
    for path, access in INSTALLATION:
        if not os.access(path, access):
            raise RefusedError(
                f"user {identity.user_name(user_id)} cannot read {path}: install tfprof where this user can read it",
                "installation-unreadable",
            )


def _send_request(connection: socket.socket, request: dict[str, Any]) -> dict[str, Any]:
    """Send ``request`` and return its reply.

    Replies to earlier requests are skipped: Ctrl-C has ended the wait for them.
    """
    with contextlib.suppress(OSError), connection.makefile("rb") as file:
        connection.sendall(json.dumps(request).encode() + b"\n")
        for line in file:
            reply: dict[str, Any] = json.loads(line)
            if reply["number"] in (None, request["number"]):
                return reply
    return {"slug": "attach-failed", "text": "the process of root has ended"}


def _serve(connection: socket.socket, user_id: int, answer: RequestHandler) -> None:
    """Answer requests until the child ends."""
    with connection.makefile("rb") as file:
        for line in file:
            number = None
            try:
                request = json.loads(line)
                number = request["number"]
                reply = answer({**request, "user_id": user_id})
            except (ValueError, TypeError, KeyError):
                reply = {"slug": "attach-failed", "text": "an unknown request"}
            with contextlib.suppress(OSError):  # the child has ended
                connection.sendall(json.dumps({**reply, "number": number}).encode() + b"\n")


@contextlib.contextmanager
def _signals_forwarded(child: int) -> Any:
    """Ignore Ctrl-C, which reaches the child, too; forward SIGTERM and SIGHUP to the child."""

    def forward(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    previous_handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, *_FORWARDED_SIGNALS)}
    signal.signal(signal.SIGINT, lambda *_: None)
    for number in _FORWARDED_SIGNALS:
        signal.signal(number, forward)
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
