"""Every answer about random cases and real runs equals that of the TF profiler."""

from pathlib import Path

import pytest
from integration.oracle.cases import REAL
from integration.oracle.conftest import Asked, seeds

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("name", [*map(str, seeds()), *REAL])
def test_answers_equal_those_of_the_tf_profiler(asked: Asked, name: str, tmp_path: Path) -> None:
    wrong = asked.report(name, tmp_path)
    assert not wrong, wrong


@pytest.mark.parametrize("name", [*map(str, seeds()), *REAL])
def test_steps_cover_the_same_share_of_the_graph(asked: Asked, name: str) -> None:
    asked.store(name)
    assert asked.coverage[name] == pytest.approx(asked.answers(name)["coverage"])
