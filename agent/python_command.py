"""Command lines of Python interpreters: what they run, and which options keep the shim out."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*")
#: Options with which Python ignores PYTHONPATH or does not load sitecustomize.
_ISOLATING_OPTIONS: Final = frozenset("IES")
#: Options whose value is the rest of the word, else the next word.
_OPTIONS_WITH_VALUE: Final = frozenset("cmWX")
_SCRIPT: Final = "script"
#: Options after which the rest of the command line belongs to the program.
_LAST_OPTIONS: Final = frozenset({"c", "m", _SCRIPT})
#: Long options whose value is the next word.
_LONG_OPTIONS_WITH_VALUE: Final = frozenset({"--check-hash-based-pycs"})
#: Maximum length of a script's first line.
_LINE_MAX: Final = 256


class PythonCommand(NamedTuple):
    """A parsed command line of a Python interpreter.

    ``isolating_options`` are those of `IES`, which keep the shim out, in order.
    ``script_or_module`` is None for `-c`, standard input and an interactive Python.
    """

    isolating_options: str = ""
    script_or_module: str | None = None

    @property
    def isolating_option(self) -> str | None:
        """The first option that keeps the shim out, None if there is none."""
        return f"-{self.isolating_options[0]}" if self.isolating_options else None

    @property
    def keeps_path(self) -> bool:
        """Whether PYTHONPATH stays on `sys.path`, but no sitecustomize removes a folder from it."""
        return set(self.isolating_options) == {"S"}


def paths(name: str, environ: Mapping[str, str]) -> list[str]:
    """Return the paths at which the command ``name`` is looked for, in order."""
    if "/" in name:
        return [name]
    return [os.path.join(folder, name) for folder in os.get_exec_path(dict(environ))]


def with_python(command: list[str]) -> list[str]:
    """Return ``command``; a Python file that is no command is run by the Python on PATH, if any."""
    script = command[0]
    is_command = any(os.access(path, os.X_OK) for path in paths(script, os.environ))
    if is_command or not script.endswith(".py") or not os.path.isfile(script):
        return command
    pythons = (path for name in ("python", "python3") for path in paths(name, os.environ))
    python = next((path for path in pythons if os.access(path, os.X_OK)), None)
    return command if python is None else [python, *command]


def is_python(path: str) -> bool:
    """Return whether the program at ``path`` has the name of a Python interpreter."""
    return _PYTHON.fullmatch(os.path.basename(path)) is not None


def parse(command: Sequence[str]) -> PythonCommand | None:
    """Return the parsed command line, None if ``command`` does not start a Python."""
    if not command or not is_python(command[0]):
        return None
    isolating_options = ""
    for option, value in _options(iter(command[1:])):
        if option in _LAST_OPTIONS:
            return PythonCommand(isolating_options, value if option != "c" else None)
        if option in _ISOLATING_OPTIONS:
            isolating_options += option
    return PythonCommand(isolating_options)


def interpreter_of(path: str) -> list[str] | None:
    """Return the Python that runs the program at ``path``, with the options in the first line.

    None if no Python runs it.
    """
    if is_python(path):
        return [path]
    try:
        with open(path, "rb") as file:
            line = os.fsdecode(file.readline(_LINE_MAX))
    except OSError:
        return None
    words = line[2:].split() if line.startswith("#!") else []
    if words and os.path.basename(words[0]) == "env":
        words = words[2:] if words[1:2] == ["-S"] else words[1:]
    return words if words and is_python(words[0]) else None


def _options(words: Iterator[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each option's letter with its value, and `_SCRIPT` with the script."""
    for word in words:
        if word in _LONG_OPTIONS_WITH_VALUE:
            next(words, None)
        elif word == "--":
            yield _SCRIPT, next(words, None)
        elif word == "-":
            yield _SCRIPT, None
        elif not word.startswith("-"):
            yield _SCRIPT, word
        elif not word.startswith("--"):
            yield from _short_options(word[1:], words)


def _short_options(letters: str, words: Iterator[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the options of a word of several letters, each with its value."""
    for end, letter in enumerate(letters, 1):
        if letter in _OPTIONS_WITH_VALUE:
            yield letter, letters[end:] or next(words, None)
            return
        yield letter, None
