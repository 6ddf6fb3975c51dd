"""The source files, their imports and their error slugs, for the house rules."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from tfprof.agent.attach.inject import METHODS
from tfprof.cli.main import COMMANDS
from tfprof.collector.alerts.alert import SLUGS
from tfprof.formats.exports import FORMATS
from tfprof.formats.settings import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("formats", "commands", "shim", "agent", "collector", "cli", "web")
DASHED = re.compile("[a-z]+(-[a-z0-9]+)+")
#: Headers of HTTP, and a value of one.
HEADERS = {"content-disposition", "content-length", "content-type", "same-origin", "sec-fetch-site"}
#: Words with dashes that are neither slugs nor settings.
NO_SLUGS = {"daemon-reload", "tfprof-run", "tfprof-spool", "utf-8", *COMMANDS, *FORMATS, *HEADERS, *METHODS}


def sources(*parts: str) -> list[Path]:
    """Return the Python files of ``parts`` (by default all), without generated ones."""
    files = [path for part in parts or PARTS for path in sorted((ROOT / part).rglob("*.py"))]
    return [path for path in files if not path.name.endswith("_pb2.py")]


@functools.cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of ``path``."""
    return ast.parse(path.read_text(), filename=str(path))


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """Return the absolute name of every module that ``path`` imports, anywhere in it."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    package = ["tfprof", *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            if not node.module:
                yield from (f"{module}.{alias.name}" for alias in node.names)


def slugs() -> set[str]:
    """Return every slug of an error, event, refusal or alert.

    These are the strings that are bound to the name `slug`, and all strings like `two-words` other
    than settings and NO_SLUGS.
    """
    words = set(SLUGS)
    for path in sources():
        for node in ast.walk(tree(path)):
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(target, ast.Name) and target.id == "slug" for target in targets):
                    words |= _literal_strings(node.value)
            elif isinstance(node, ast.keyword) and node.arg == "slug":
                words |= _literal_strings(node.value)
            elif isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == "slug":
                        words |= _literal_strings(value)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and DASHED.fullmatch(node.value):
                words |= {node.value} - set(SETTINGS) - NO_SLUGS
    return words


def _literal_strings(node: ast.expr | None) -> set[str]:
    """Return the string ``node`` in a set, or an empty set if ``node`` is no literal string."""
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()
