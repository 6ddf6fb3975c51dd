"""Every answer to every question, random or about real runs, is that of TensorFlow's own profiler."""

from pathlib import Path

import pytest
from integration.oracle.cases import REAL
from integration.oracle.conftest import Asked, seeds

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("name", [*map(str, seeds()), *REAL])
def test_answers_are_those_of_tensorflows_own_profiler(asked: Asked, name: str, tmp_path: Path) -> None:
    told = asked.report(name, tmp_path)
    assert not told, told


@pytest.mark.parametrize("name", [*map(str, seeds()), *REAL])
def test_steps_cover_as_much_of_the_graph(asked: Asked, name: str) -> None:
    asked.store(name)
    assert asked.coverage[name] == pytest.approx(asked.answers(name)["coverage"])
