"""The environment with which a command was started, before starter.c renamed variables in it."""

import os

#: Prefix of the variables that steer a Python. They are meant for the job, and tfprof's own Python
#: must not see them (starter.c).
_SAVED = "_TFPROF_JOB_"


def initial_environment() -> dict[str, str]:
    """Return the initial environment of this process; Python may add LC_CTYPE to os.environ."""
    try:
        with open("/proc/self/environ", "rb") as file:
            pairs = [os.fsdecode(entry).partition("=") for entry in file.read().split(b"\0")]
    except OSError:
        pairs = [(name, "=", text) for name, text in os.environ.items()]
    return {name.removeprefix(_SAVED): text for name, equals, text in reversed(pairs) if equals and name}
