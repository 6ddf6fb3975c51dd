"""The commands on the pages that answer questions run, and print what the pages show."""

import os
import re
import runpy
import sys
from pathlib import Path

import pytest
from house.tree import ROOT

pytestmark = pytest.mark.tf
TOOL = runpy.run_path(str(ROOT / "tools" / "pages"))
PAGES = sorted((ROOT / "docs" / "questions").glob("*.md"))
#: Pages whose commands run here. The others have jobs of the same kinds; `make pages` runs all.
RUN_PAGES = [page for page in PAGES if page.stem in ("input-bound", "memory", "since-when", "slow-step", "this-pid")]
#: First words of outputs that depend on what else the host does.
VERDICT = "Verdict:"
#: Lines that a page may have: one screen of text and outputs.
LINES_MAX = 75


def first_words(line: str) -> list[str]:
    """Return the words at the start of a line before the first one with a digit."""
    words = line.replace("…", " ").split()
    return words[: next((at for at, word in enumerate(words) if re.search(r"\d", word)), len(words))][:2]


@pytest.mark.parametrize("page", RUN_PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page: Path, digits_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    text = page.read_text()
    lines = text.splitlines()
    for result in TOOL["run"](text, str(digits_python)):
        command, first, end = result.command
        assert result.status == 0, (command, result.lines)
        shown = lines[first:end]
        assert bool(shown) == bool(result.lines) or not lines[first - 1].lstrip().startswith("$"), command
        if shown and shown[0] != TOOL["LEFT_OUT"] and not {VERDICT} & {shown[0].split()[0], result.lines[0].split()[0]}:
            assert first_words(shown[0]) == first_words(result.lines[0])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_one_screen_with_commands(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert len(lines) <= LINES_MAX
    assert [command for command in TOOL["commands"](lines) if lines[command.first - 1].startswith("$ ")]
    assert not re.search(r"/tmp/|/work/|/root/", page.read_text())
