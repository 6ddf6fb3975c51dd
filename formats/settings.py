"""The table of all settings, with one row for each."""

from __future__ import annotations

import os

from .errors import UsageError
from .values import (
    InvalidValueError,
    count,
    days,
    flag,
    job_names,
    optional_engine_url,
    optional_limit,
    seconds,
    size,
    size_or_zero,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping


class SettingError(UsageError, ValueError):
    """A variable with an invalid value; the message names both."""


class Setting(object):
    """One setting.

    ``name`` is its name as an option and in files, ``variable`` its environment variable. ``users``
    are the parts that read it. ``sentence`` describes it in docs/settings.md.
    """

    __slots__ = ("default", "name", "parse", "sentence", "users", "variable")

    def __init__(
        self, name: str, variable: str, default: str, parse: Callable[[str], Any], users: tuple[str, ...], sentence: str
    ) -> None:
        self.name = name
        self.variable = variable
        self.default = default
        self.parse = parse
        self.users = users
        self.sentence = sentence

    def read(self, environ: Mapping[str, str] | None = None) -> Any:
        """Return the value in ``environ`` (by default os.environ); SettingError if it is invalid.

        If the variable is missing or empty, return the default.
        """
        return self.value((os.environ if environ is None else environ).get(self.variable))

    def value(self, text: str | None) -> Any:
        """Return the value of ``text``; SettingError if it is invalid."""
        try:
            return self.parse(text or self.default)
        except InvalidValueError as error:
            raise SettingError("%s: %s" % (self.variable, error)) from None


_ROWS = (
    Setting(
        "trace",
        "TFPROF_TRACE",
        "budget=1%",
        str,
        ("shim", "launcher"),
        "Which steps are traced: off, all, every=N, steps=A-B, or budget=P%.",
    ),
    Setting(
        "trace-level",
        "TFPROF_TRACE_LEVEL",
        "auto",
        str,
        ("shim", "launcher"),
        "How much a traced step records: auto, software, or full, which can make a run fail.",
    ),
    Setting(
        "ring",
        "TFPROF_RING",
        "16M",
        size,
        ("shim", "launcher"),
        "Size of the record ring of each process, from 1M to 1G.",
    ),
    Setting(
        "output",
        "TFPROF_OUTPUT",
        "",
        str,
        ("launcher",),
        "Files that tfprof-run writes when a job ends, separated by commas; {name} and {id} are the job's.",
    ),
    Setting(
        "run",
        "TFPROF_RUN",
        "",
        str,
        ("shim",),
        "Set by tfprof-run or tfprof attach: the launch and its folder; without it no process is armed at its start.",
    ),
    Setting(
        "debug",
        "TFPROF_DEBUG",
        "",
        flag,
        ("shim", "commands"),
        "Print tracebacks on standard error, for errors of the shim in a job and of commands.",
    ),
    Setting(
        "raise",
        "TFPROF_RAISE",
        "",
        flag,
        ("shim",),
        "Let the shim's own errors reach the job; for this project's tests.",
    ),
    Setting(
        "store",
        "TFPROF_STORE",
        "",
        str,
        ("agent", "collector", "launcher", "commands"),
        "The folder for the results; by default $XDG_STATE_HOME/tfprof.",
    ),
    Setting(
        "collector",
        "TFPROF_COLLECTOR",
        "",
        str,
        ("agent", "launcher", "commands"),
        "The collector on another host to which jobs of this host go, such as tcp://head:7199; by default a local one.",
    ),
    Setting(
        "collector-key",
        "TFPROF_COLLECTOR_KEY",
        "",
        str,
        ("agent",),
        "The file with this host's key for that collector; by default collector.key beside the user's settings.",
    ),
    Setting(
        "remote-orders",
        "TFPROF_REMOTE_ORDERS",
        "yes",
        flag,
        ("agent",),
        "Whether this host obeys orders (tfprof trace, detach) and requests (ps, doctor) of that collector's host.",
    ),
    Setting(
        "remote-attach",
        "TFPROF_REMOTE_ATTACH",
        "no",
        flag,
        ("agent",),
        "Whether `tfprof attach --host` on that collector's host attaches to processes of this user here.",
    ),
    Setting(
        "spool-bytes",
        "TFPROF_SPOOL_BYTES",
        "1G",
        size_or_zero,
        ("agent",),
        "Size of the data that waits on this host's disk while that collector is away, such as 1G; 0 for none.",
    ),
    Setting(
        "agent-idle",
        "TFPROF_AGENT_IDLE",
        "60",
        seconds,
        ("agent",),
        "Seconds without a job after which the agent ends.",
    ),
    Setting(
        "collector-idle",
        "TFPROF_COLLECTOR_IDLE",
        "60",
        seconds,
        ("collector",),
        "Seconds without an agent after which the collector ends.",
    ),
    Setting(
        "keep-days",
        "TFPROF_KEEP_DAYS",
        "",
        optional_limit(days),
        ("collector",),
        "Days for which a job is kept after its end, more than 0; by default forever.",
    ),
    Setting(
        "keep-bytes",
        "TFPROF_KEEP_BYTES",
        "",
        optional_limit(size),
        ("collector",),
        "Size of the store, such as 50G, above which its oldest ended jobs are removed; by default never.",
    ),
    Setting(
        "baselines",
        "TFPROF_BASELINES",
        "",
        job_names,
        ("collector",),
        "Names of jobs, separated by commas, whose last ten ended runs keep-days and keep-bytes never remove.",
    ),
    Setting(
        "readers",
        "TFPROF_READERS",
        "",
        str,
        ("collector",),
        "The group whose members may read the jobs of all users in a shared store (tfprof serve --shared).",
    ),
    Setting(
        "alert-steps",
        "TFPROF_ALERT_STEPS",
        "5",
        count,
        ("collector",),
        "Steps that are traced after an alert about slower steps; 0 for none.",
    ),
    Setting(
        "copy-to",
        "TFPROF_COPY_TO",
        "",
        optional_engine_url,
        ("collector",),
        "The store in ClickHouse to which all jobs are copied while they run, such as clickhouse://head/tfprof.",
    ),
    Setting(
        "clickhouse-user",
        "TFPROF_CLICKHOUSE_USER",
        "default",
        str,
        ("collector", "commands"),
        "The user of ClickHouse.",
    ),
    Setting(
        "clickhouse-password-file",
        "TFPROF_CLICKHOUSE_PASSWORD_FILE",
        "",
        str,
        ("collector", "commands"),
        "The file with the password of that user in its first line, which only you can read.",
    ),
    Setting(
        "alert-command",
        "TFPROF_ALERT_COMMAND",
        "",
        str,
        ("collector",),
        "Shell command that the collector runs for alerts (docs/alerts.md).",
    ),
)

SETTINGS = {row.name: row for row in _ROWS}
