"""Joins the modules of the page into one script, for a page without a server.

The modules use a small part of the syntax: `import { a, b as c } from "./x.js"` and `export` in
front of a declaration, or a list of exports at the end.
"""

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from .assets import text

_IMPORT: Final = re.compile(r'^import \{([^}]*)\} from "([^"]+)";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) )", re.MULTILINE)
_EXPORTED: Final = re.compile(r"^export (?:async )?(?:function|class|const|let) ([\w$]+)", re.MULTILINE)
_EXPORT_LIST: Final = re.compile(r"export ?\{([^}]*)\};?\s*\Z")


def modules(entry: str) -> list[str]:
    """Return the names of ``entry`` and of all modules that it imports, each after its imports."""
    order: list[str] = []
    _visit(entry, order, [])
    return order


def _visit(name: str, order: list[str], above: list[str]) -> None:
    if name in above:
        raise ValueError(f"modules import each other: {' '.join([*above, name])}")
    if name not in order:
        for imported in _imported(name):
            _visit(imported, order, [*above, name])
        order.append(name)


def _imported(name: str) -> Iterator[str]:
    return (_resolved(name, target) for _, target in _IMPORT.findall(text(name)))


def _resolved(name: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), target))


def _pairs(names: str) -> list[tuple[str, str]]:
    """Return (name, alias) of the entries of a list of imports or exports."""
    words = [entry.split() for entry in names.split(",") if entry.strip()]
    return [(entry[0], entry[-1]) for entry in words]


def _function(name: str) -> str:
    """Return the module ``name`` as a function that returns its exports."""
    exported = [(one, one) for one in _EXPORTED.findall(text(name))]

    def imported(match: re.Match[str]) -> str:
        entries = ", ".join(one if one == alias else f"{one}: {alias}" for one, alias in _pairs(match[1]))
        return f"const {{ {entries} }} = modules[{_resolved(name, match[2])!r}];"

    def listed(match: re.Match[str]) -> str:
        exported.extend(_pairs(match[1]))
        return ""

    code = _EXPORT_LIST.sub(listed, _EXPORT.sub("", _IMPORT.sub(imported, text(name))))
    parts = [f"{alias}: {one}" for one, alias in exported]
    return f"modules[{name!r}] = (() => {{\n{code}\nreturn {{ {', '.join(parts)} }};\n}})();"


def script(entry: str) -> str:
    """Return one script that does what the module ``entry`` does."""
    body = "\n".join(map(_function, modules(entry)))
    return f'(() => {{\n"use strict";\nconst modules = {{}};\n{body}\n}})();\n'
