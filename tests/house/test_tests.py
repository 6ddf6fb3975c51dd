"""Each module of 25 lines or more is found from its test.

Its test is at the mirrored path (collector/store/wal.py: tests/unit/collector/store/test_wal.py),
or the docstring of a test file names it in a line that begins with *Tests*.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from house.tree import ROOT, sources, tree

#: Shorter modules need no test of their own.
LINES_MIN = 25
NAMED = re.compile(r"\b(?:[a-z_]+/)+[a-z_]+\.py\b")


@cache
def _named() -> dict[str, list[str]]:
    """Return the modules that the docstrings of tests name, by test file."""
    named = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        _, found, text = (ast.get_docstring(tree(path)) or "").partition("\nTests ")
        if found:
            named[path.relative_to(ROOT).as_posix()] = NAMED.findall(text)
    return named


def _mirror(path: Path) -> Path:
    return ROOT / "tests" / "unit" / path.parent.relative_to(ROOT) / f"test_{path.name}"


def test_each_module_is_found_from_its_test() -> None:
    named = {module for modules in _named().values() for module in modules}
    modules = [path for path in sources() if len(path.read_text().splitlines()) >= LINES_MIN]
    without_test = {
        path.relative_to(ROOT).as_posix()
        for path in modules
        if not _mirror(path).exists() and path.relative_to(ROOT).as_posix() not in named
    }
    assert not without_test


@pytest.mark.parametrize("test", _named())
def test_a_docstring_names_modules_that_exist_and_have_no_mirrored_test(test: str) -> None:
    for module in _named()[test]:
        assert (ROOT / module).is_file(), module
        assert not _mirror(ROOT / module).exists(), module
