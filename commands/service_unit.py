"""The systemd unit of `tfprof serve`: its text and its place."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..formats.settings import SETTINGS
from . import daemons, settings_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pwd import struct_passwd

SYSTEM_FOLDER = "/etc/systemd/system"
#: The user and the store of the service for all users. The user owns the store.
SHARED_USER = "tfprof"
SHARED_STORE = "/var/lib/tfprof"
#: Limits of memory: each collector needs a tenth of the first one.
_MEMORY_OF_ONE = "MemoryMax=2G"
_MEMORY_OF_ALL = "MemoryMax=25%\nOOMPolicy=continue"
#: Variables of folders, and of the settings that the collector reads. The unit gets their values,
#: since systemd starts a service without the variables of a shell.
_FOLDERS = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "TMPDIR")
_SETTINGS = tuple(row.variable for row in SETTINGS.values() if "collector" in row.users)

#: These options also work without root. An alert command has the same limits.
_TEXT = """\
# Written by tfprof serve --install.
[Unit]
Description=tfprof collector
Documentation=man:tfprof(1)
{unit}
[Service]
Type=notify
{service}ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
KillMode=mixed
Restart=on-failure
RestartSec=5
# 2: a setting is invalid
RestartPreventExitStatus=2
TimeoutStartSec=10min
TimeoutStopSec=1min
WatchdogSec=2min
{memory}
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
{hardening}
[Install]
WantedBy={target}
"""
_SYSTEM_HARDENING = """\
ProtectSystem=full
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
"""


@dataclass(frozen=True)
class Unit:
    """A unit for systemd: ``path`` is its file, ``text`` its content."""

    path: str
    text: str

    @property
    def name(self) -> str:
        """The name by which systemctl knows the unit."""
        return os.path.basename(self.path)


def user_unit(store: str | None, words: Sequence[str] = ()) -> Unit:
    """Return the unit of this user's own systemd; ``store`` is None for that of the settings.

    ``words``: further options of `tfprof serve`.
    """
    base = os.environ.get("XDG_CONFIG_HOME") or ""
    base = base if os.path.isabs(base) else os.path.expanduser("~/.config")
    text = _TEXT.format(
        unit="",
        service=_environment_lines(_own_environment()),
        command=_command(store, words),
        memory=_MEMORY_OF_ONE,
        hardening="",
        target="default.target",
    )
    return Unit(os.path.join(base, "systemd", "user", "tfprof.service"), text)


def system_unit(store: str | None, account: struct_passwd, words: Sequence[str] = ()) -> Unit:
    """Return the unit of the host's systemd that serves ``account``, with its ``store`` or None."""
    uid = account.pw_uid
    runtime = {"XDG_RUNTIME_DIR": "/run/user/%d" % uid}
    environment = {**_own_environment(), **runtime} if uid == os.geteuid() else runtime
    folder = "user-runtime-dir@%d.service" % uid  # it makes the runtime folder before the user logs in
    text = _TEXT.format(
        unit="Requires=%s\nAfter=%s\n" % (folder, folder),
        service="User=%s\n%s" % (account.pw_name, _environment_lines(environment)),
        command=_command(store, words),
        memory=_MEMORY_OF_ONE,
        hardening=_SYSTEM_HARDENING,
        target="multi-user.target",
    )
    return Unit(os.path.join(SYSTEM_FOLDER, "tfprof-%s.service" % account.pw_name), text)


def shared_unit(store: str) -> Unit:
    """Return the unit of the host's systemd that serves all users, with the shared ``store``."""
    folders = "RuntimeDirectory=tfprof\nRuntimeDirectoryMode=0700\n"
    if store == SHARED_STORE:
        folders += "StateDirectory=tfprof\nStateDirectoryMode=0711\n"
    text = _TEXT.format(
        unit="",
        service="User=%s\n%s%s" % (SHARED_USER, folders, _environment_lines({"XDG_RUNTIME_DIR": "/run/tfprof"})),
        command=_command(store, ["--shared"]),
        memory=_MEMORY_OF_ALL,
        hardening=_SYSTEM_HARDENING,
        target="multi-user.target",
    )
    return Unit(os.path.join(SYSTEM_FOLDER, "tfprof.service"), text)


def _own_environment() -> dict[str, str]:
    """Return the variables that make the service use the same folders as jobs of this shell."""
    names = [name for name in (*_FOLDERS, *_SETTINGS) if os.environ.get(name)]
    own = {name: os.environ[name] for name in names if name not in settings_files.paths_by_variable}
    return {"XDG_RUNTIME_DIR": os.environ.get("XDG_RUNTIME_DIR", ""), **own}


def _environment_lines(values: dict[str, str]) -> str:
    return "".join("Environment=%s\n" % _quoted("%s=%s" % item) for item in values.items())


def _command(store: str | None, words: Sequence[str]) -> str:
    """Return the command line of the service; its program is the one beside this Python, if any."""
    program = os.path.join(os.path.dirname(sys.executable), "tfprof")
    command = [program] if os.access(program, os.X_OK) else daemons.isolated_command("tfprof", [])
    all_words = [*command, "serve", *([] if store is None else ["--store", store]), *words]
    return " ".join(_quoted(word).replace("$", "$$") for word in all_words)


def _quoted(text: str) -> str:
    """Return ``text`` as a word in a unit file, in quotes unless it is plain."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
    return escaped if escaped == text and text and not set(text) & set(" \t'") else '"%s"' % escaped
