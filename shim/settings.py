"""The one table of settings: each is written here once, whoever reads it."""

from __future__ import annotations

import os

from .errors import UsageError
from .guard import theirs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


#: The longest number that is read: more digits than any that can be meant, and fewer than Python refuses.
DIGITS_MAX = 18
#: What nobody waits for to the end, in seconds and days: a hundred years.
SECONDS_MAX = 100 * 365.25 * 86400
DAYS_MAX = SECONDS_MAX / 86400
NAME_MAX = 200


class SettingError(UsageError, ValueError):
    """A variable whose text is no value of its setting; the message names both."""


def whole(text: str) -> int | None:
    """Return the number from 0 that ``text`` is, in the digits 0 to 9; None when it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else None


def size(text: str) -> int:
    """Return the bytes that ``text`` means: a number with K, M or G behind it, or none; ValueError when it is neither."""
    word = text.strip().lower()
    unit = UNITS.get(word[-1:], 1)
    number = whole(word[:-1] if unit != 1 else word)
    if not number:
        raise ValueError("%r is no size: a number from 1, with K, M or G behind it or none" % text)
    return number * unit


def seconds(text: str) -> float:
    """Return the seconds that ``text`` means; ValueError when it is no number above 0, or more than a hundred years."""
    number = _decimal(text)
    if not 0 < number <= SECONDS_MAX:
        raise ValueError("%r is no time in seconds: a number above 0" % text)
    return number


def days(text: str) -> float:
    """Return the days that ``text`` means; ValueError when it is no number above 0, or more than a hundred years."""
    number = _decimal(text)
    if not 0 < number <= DAYS_MAX:
        raise ValueError("%r is no time in days: a number above 0" % text)
    return number


def _decimal(text: str) -> float:
    """Return the number that ``text`` is, -1 when it is none."""
    try:
        return float(text) if text.isascii() and "_" not in text else -1.0
    except ValueError as error:
        if theirs(error):
            raise
        return -1.0


def job_name(text: str) -> str:
    """Return the name of a job; ValueError when a job of that name could not be shown, or asked about."""
    if not text.strip() or not text.isprintable() or len(text) > NAME_MAX:
        raise ValueError("%r is no name for a job: 1 to %d printable characters" % (text, NAME_MAX))
    if text == "last":
        raise ValueError("'last' is no name for a job: it stands for the last one")
    return text


def flag(text: str) -> bool:
    """Return whether ``text`` switches something on; ValueError when it is neither yes nor no."""
    word = text.strip().lower()
    if word in ("1", "yes", "true", "on"):
        return True
    if word in ("", "0", "no", "false", "off"):
        return False
    raise ValueError("%r is neither yes nor no" % text)


def limit(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a parser of what ``parse`` reads, or of no text at all, which is None: no limit."""
    return lambda text: parse(text) if text.strip() else None


class Setting(object):
    """One row: name (as an option and in a file), variable, default, parser, who reads it, and a sentence."""

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
        """Return the value in ``environ`` (the process's by default); SettingError when it cannot be read.

        Without the variable, or with an empty one, it is the default.
        """
        return self.value((os.environ if environ is None else environ).get(self.variable))

    def value(self, text: str | None) -> Any:
        """Return the value that ``text`` of the variable means; SettingError when it means none."""
        try:
            return self.parse(text or self.default)
        except ValueError as error:
            if theirs(error):
                raise
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
        "How much a traced step records: auto, software, or full (see the warning there).",
    ),
    Setting(
        "ring",
        "TFPROF_RING",
        "16M",
        size,
        ("shim", "launcher"),
        "Memory for records that the agent has not taken yet, a process; from 1M to 1G.",
    ),
    Setting(
        "run",
        "TFPROF_RUN",
        "",
        str,
        ("shim",),
        "Set by tfprof-run: the launch and its folder; without it nothing is armed.",
    ),
    Setting(
        "debug",
        "TFPROF_DEBUG",
        "",
        flag,
        ("shim", "commands"),
        "Print what went wrong inside the job's process, or in a command, on its standard error.",
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
        ("agent", "collector", "launcher"),
        "The folder that results are kept in; by default $XDG_STATE_HOME/tfprof.",
    ),
    Setting(
        "agent-idle",
        "TFPROF_AGENT_IDLE",
        "60",
        seconds,
        ("agent",),
        "Seconds that the agent stays when there is no job for it.",
    ),
    Setting(
        "collector-idle",
        "TFPROF_COLLECTOR_IDLE",
        "60",
        seconds,
        ("collector",),
        "Seconds that the collector stays when no agent is heard of.",
    ),
    Setting(
        "keep-days",
        "TFPROF_KEEP_DAYS",
        "",
        limit(days),
        ("collector",),
        "Days that a job is kept after its end, more than 0; without it for ever.",
    ),
    Setting(
        "keep-bytes",
        "TFPROF_KEEP_BYTES",
        "",
        limit(size),
        ("collector",),
        "Size of the store above which its oldest ended jobs are removed, as 50G; without it never.",
    ),
)

SETTINGS = {row.name: row for row in _ROWS}
