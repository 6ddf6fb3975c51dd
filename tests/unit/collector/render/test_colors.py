"""Colors of texts: one table for all parts of a step, and no text of a job acts on the terminal.

Tests collector/render/parts.py.
"""

import re
from collections.abc import Iterator

import pytest
from tfprof.collector.numbers import bar
from tfprof.collector.render import colors
from tfprof.collector.render.table import Column, render
from tfprof.collector.summaries.op_classes import BACKWARD, FORWARD, OPTIMIZER
from tfprof.collector.summaries.parts import TITLES
from tfprof.commands.streams import print_lines

SEQUENCE = re.compile("\x1b\\[[0-9;]*m")
COLUMNS = (Column("op"), Column("share", right=True), Column("", is_bar=True), Column("line", min_width=8))


@pytest.fixture
def colored() -> Iterator[None]:
    """Use colors in a test."""
    colors.use(True)
    yield
    colors.use(False)


def test_each_part_of_a_step_and_each_phase_has_a_color() -> None:
    assert {*TITLES, FORWARD, BACKWARD, OPTIMIZER} <= set(colors.STYLES)
    assert len({colors.STYLES[phase] for phase in (FORWARD, BACKWARD, OPTIMIZER)}) == 3


@pytest.mark.usefixtures("colored")
def test_a_table_has_the_same_text_with_colors() -> None:
    rows = [("MatMul", "60 %", "███", "train.py:12"), ("Add", "40 %", "██", "train.py:13")]
    painted = render(COLUMNS, rows, parts=["backward", ""])
    colors.use(False)
    plain = render(COLUMNS, rows)
    assert [SEQUENCE.sub("", line) for line in painted] == plain
    assert painted[1].startswith("\x1b[34mMatMul\x1b[0m")
    assert painted[2].startswith("Add ")
    assert not any(SEQUENCE.search(line) for line in plain)


@pytest.mark.usefixtures("colored")
@pytest.mark.parametrize("text", ["\x1b[2J\x1b]0;x\x07", "a\nb", "\x9b31m", "\u202e"])
def test_texts_of_a_job_cannot_act_on_the_terminal(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = render(COLUMNS, [(f"op{text}", "1 %", "", text)], parts=["forward"])
    print_lines([*lines, colors.paint("title", text), text])
    printed = SEQUENCE.sub("", capsys.readouterr().out)
    assert printed.count("\n") == 4
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", printed)


def test_a_bar_is_as_long_as_its_share() -> None:
    assert [bar(share, 4) for share in (0, 0.01, 0.25, 0.5, 1, 2, -1)] == ["", "", "█", "██", "████", "████", ""]
    assert bar(0.3, 10) == "███"
    assert bar(0.33, 10) == "███▎"
