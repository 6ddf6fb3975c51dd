"""Every answer to every question, random or about real runs, is that of TensorFlow's own profiler."""

from pathlib import Path

import pytest
from integration.oracle.cases import REAL
from integration.oracle.conftest import SETTING, Asked, seeds

pytestmark = pytest.mark.tf
#: Differences that are printed of a case.
SHOWN = 5


def report(asked: Asked, name: str, folder: Path) -> str:
    """Return what is answered otherwise, a few of it, and how to see that again; '' when nothing is."""
    wrong = list(asked.wrong(name, folder))
    lines = [f"{question}\n    " + "\n    ".join(found[:SHOWN]) for question, found in wrong[:SHOWN]]
    setting = f"{SETTING}={name}-{name} " if name.isdecimal() else ""
    again = f"{setting}.venv/bin/python -m pytest {Path(__file__).parent} -k '{asked.version}-{name}'"
    return f"{len(wrong)} questions\n" + "\n".join([*lines, again]) if wrong else ""


@pytest.mark.parametrize("name", [*map(str, seeds()), *REAL])
def test_answers_are_those_of_tensorflows_own_profiler(asked: Asked, name: str, tmp_path: Path) -> None:
    told = report(asked, name, tmp_path)
    assert not told, told
