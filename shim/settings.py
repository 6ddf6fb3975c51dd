"""The one table of settings: each is written here once, whoever reads it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping

UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(text: str) -> int:
    """Return the bytes that ``text`` means: a number with K, M or G behind it, or none; ValueError when it is neither."""
    word = text.strip().lower()
    unit = UNITS.get(word[-1:], 1)
    number = int(word[:-1] if unit != 1 else word)
    if number <= 0:
        raise ValueError("%r is not a size" % text)
    return number * unit


def seconds(text: str) -> float:
    """Return the seconds that ``text`` means; ValueError when it is no number, negative, or not finite."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError("%r is no time in seconds" % text)
    return number


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
        """Return the value in ``environ`` (the process's by default), else the default; ValueError when it cannot be read."""
        text = (os.environ if environ is None else environ).get(self.variable)
        return self.parse(self.default if text is None else text)


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
        ("shim",),
        "Print what went wrong inside the job's process on its standard error.",
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
        limit(float),
        ("collector",),
        "Days that a job is kept after its end; without it for ever.",
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
