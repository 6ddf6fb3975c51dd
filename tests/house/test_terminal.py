"""Rules for text that leaves tfprof: `clean` in commands/streams.py cleans it."""

import ast
import re
from collections.abc import Iterator

import pytest
from house.tree import ROOT, sources, tree

#: Names that lead to a terminal, libraries that write on it, and its files.
TERMINAL = re.compile(
    r"print|SystemExit|sys\.(__)?(stdout|stderr|displayhook)(__)?|sys\.(unraisable|except)hook"
    r"|os\.(writev?|sendfile|system|popen)|traceback\.print_\w+|code\.interact"
    r"|click\.(echo|secho|confirm|prompt|pause|style|echo_via_pager|progressbar|edit)|(open|fdopen|FileIO) [0-2]"
    r"|import (argparse|curses|faulthandler|getpass|logging|pprint|prompt_toolkit|pty|rich)"
    r"|import (syslog|textual|tqdm|warnings)"
    r"|/dev/(tty|pts|console|stdout|stderr|fd).*|/proc/self/fd/[12]"
)
#: Names that lead to the environment of another process.
ENVIRONMENT = re.compile(
    r"import (subprocess|multiprocessing|pty)|os\.(exec|spawn|posix_spawn)\w*|(asyncio\.)?create_subprocess_\w+"
    r"|os\.(un|put)?setenv|os\.putenv|os\.environb?(\.(update|setdefault|clear|pop)|\[\])"
)
#: File, or folder -> the names that it may use, and why no text of a job gets through uncleaned.
TERMINAL_FILES = {
    "agent/__main__.py": "import argparse",  # the arguments of this process
    "agent/attach/__main__.py": "print",  # JSON for the command that started this helper
    "agent/launcher/run.py": "import argparse, SystemExit, sys.stderr",  # the help; the end; whether it is open
    "agent/launcher/series.py": "sys.stderr",  # whether it is open
    "agent/launcher/supervise.py": "os.write",  # a number into a pipe
    "agent/launcher/witness.py": "os.write",  # numbers into a pipe
    "cli/colored.py": "sys.stdout",  # whether it is a terminal
    "cli/command.py": "sys.stdout",  # whether it is a terminal
    "cli/follow.py": "sys.stdout",  # whether its reader is gone
    "cli/main.py": "sys.stdout",  # its end
    "cli/progress.py": "sys.stderr, import rich",  # the names of files, cleaned
    "cli/report.py": "import argparse",  # the arguments of this process
    "cli/rm.py": "click.confirm, sys.stderr",  # a question with two numbers; whether there is a terminal
    "cli/shell.py": "sys.stdout",  # whether it is a terminal, its end
    "cli/shell_terminal.py": "import prompt_toolkit",  # the user's own lines, and cleaned completions
    "cli/top.py": "sys.stdout, sys.stderr",  # whether they are terminals
    "cli/top_rows.py": "import rich, import textual",  # lines that cli/top_screen.py has cleaned
    "cli/top_screen.py": "import textual",  # cleans each text for a widget
    "collector/__main__.py": "import argparse",  # the arguments of this process
    "collector/sharing/__main__.py": "import argparse",  # the arguments of this process
    "collector/api.py": "sys.stderr",  # an argument of print_lines
    "collector/export/files.py": "/dev/fd/, /dev/stdout, /dev/stderr",  # files that the user names, as bytes
    "collector/exporters/table.py": "sys.stdout",  # bytes of a file, never to a terminal
    "collector/ingest/worker_process.py": "sys.stderr",  # flushed before a fork
    "collector/store/durable.py": "os.write",  # files
    "commands/daemons.py": "os.write",  # the repr of an error, into a log
    "commands/streams.py": "sys.stdout, sys.stderr",
    "formats/runtime_dir.py": "os.write",  # a file
    "shim/": "os.write, sys.stderr",  # files; our own traceback on the job's own standard error, for debugging
}
ENVIRONMENT_FILES = {
    "agent/attach/helper_process.py": "import subprocess",  # the environment of the command
    "agent/attach/identities.py": "os.environ.clear, os.environ.update",  # absolute paths of the user
    "agent/daemon/node_requests.py": "import subprocess",  # the environment of the agent; checked arguments
    "agent/diagnosis.py": "import subprocess",  # the environment of the command
    "agent/launcher/report.py": "os.posix_spawn",  # the environment of the launcher; cleaned arguments
    "agent/launcher/supervise.py": "os.execve",  # the environment of the launcher, for the job
    "cli/serve.py": "import subprocess",  # the environment of the command, for systemctl
    "collector/alert_command.py": "import subprocess",  # cleaned texts
    "collector/copier.py": "import subprocess",  # the environment of the collector
    "commands/daemons.py": "os.execve",  # the environment of the command
}


def test_text_reaches_a_terminal_through_one_module() -> None:
    assert _uses(TERMINAL) == _expected(TERMINAL_FILES)


def test_text_reaches_an_environment_in_a_few_modules() -> None:
    assert _uses(ENVIRONMENT) == _expected(ENVIRONMENT_FILES)


@pytest.mark.parametrize(
    "code",
    [
        "print(name)",
        "import sys\nsys.stdout.write(name)",
        "import sys as system\nsystem.__stderr__.write(name)",
        "from sys import stderr as errors",
        "import os\nos.write(1, name)",
        "from os import write as put",
        "open(1, 'w').write(name)",
        "os.fdopen(2, 'w')",
        "io.FileIO(0)",
        "open('/dev/tty', 'w')",
        "path = f'/dev/pts/{number}'",
        "raise SystemExit(name)",
        "import click\nclick.echo(name)",
        "from click import secho",
        "from rich.console import Console",
        "import logging",
        "def log():\n    import warnings",
        "from importlib import import_module\nimport_module('logging')",
        "getattr(sys, 'stdout')",
    ],
)
def test_a_way_to_a_terminal_is_found(code: str) -> None:
    assert any(map(TERMINAL.fullmatch, _names(ast.parse(code))))


@pytest.mark.parametrize(
    "code",
    [
        "from subprocess import run",
        "import os\nos.environ['NAME'] = name",
        "import os\nos.environb[b'NAME'] = name",
        "import os as system\nsystem.environ |= names",
        "from os import environ\nenviron.update(names)",
        "from os import environ as variables\nvariables['NAME'] = name",
        "import os\nos.putenv('NAME', name)",
        "import os\nos.execvpe(path, arguments, variables)",
        "import os\nos.posix_spawn(path, arguments, variables)",
        "import asyncio\nasyncio.create_subprocess_exec(path)",
        "import multiprocessing.pool",
    ],
)
def test_a_way_to_an_environment_is_found(code: str) -> None:
    assert any(map(ENVIRONMENT.fullmatch, _names(ast.parse(code))))


def _expected(table: dict[str, str]) -> dict[str, set[str]]:
    return {file: set(names.split(", ")) for file, names in table.items()}


def _uses(pattern: re.Pattern[str]) -> dict[str, set[str]]:
    """Return the names that match ``pattern``, by the file or folder that uses them."""
    found: dict[str, set[str]] = {}
    for path in sources():
        file = path.relative_to(ROOT).as_posix()
        names = {name for name in _names(tree(path)) if pattern.fullmatch(name)}
        if names:
            found.setdefault("shim/" if file.startswith("shim/") else file, set()).update(names)
    return found


def _names(module: ast.Module) -> Iterator[str]:
    """Yield each name, dotted name and text in a file, with the names that its imports stand for.

    `import LIBRARY` stands for an import, `open 1` for opening a descriptor, and
    `NAME[]` for an assignment to an item.
    """
    aliases = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (f"import {alias.name.partition('.')[0]}" for alias in node.names)
            aliases.update({alias.asname: alias.name for alias in node.names if alias.asname})
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield f"import {str(node.module).partition('.')[0]}"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            aliases.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    for node in ast.walk(module):
        yield from _names_in(node, aliases)


def _names_in(node: ast.AST, aliases: dict[str, str]) -> Iterator[str]:
    if isinstance(node, (ast.Name, ast.Attribute)):
        yield _full_name(node, aliases)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Call):
        function = _full_name(node.func, aliases).rpartition(".")[2]
        match node.args:
            case [ast.Constant(value=value), *_]:
                yield f"{'import' if function in {'import_module', '__import__'} else function} {value!s}"
            case [owner, ast.Constant(value=value), *_] if function == "getattr":
                yield f"{_full_name(owner, aliases)}.{value!s}"
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        yield _full_name(node.value, aliases) + "[]"
    elif isinstance(node, ast.AugAssign):
        yield _full_name(node.target, aliases) + "[]"


def _full_name(node: ast.AST, aliases: dict[str, str]) -> str:
    first, dot, rest = ast.unparse(node).partition(".")
    return aliases.get(first, first) + dot + rest
