"""The TF profiler and tfprof read each other's profiles, and answer questions from them alike."""

from pathlib import Path

import pytest
from integration.oracle.comparison import comparable, differences
from integration.oracle.conftest import Asked
from integration.oracle.profiles import content

pytestmark = pytest.mark.tf


def test_profiles_of_tfprof_equal_those_of_tensorflow(asked: Asked) -> None:
    for name in asked.reloaded():
        mine, theirs = (
            content((asked.case(f"{whose}-{name}") / "profile.pb").read_bytes()) for whose in ("ours", "theirs")
        )
        assert not list(differences(theirs, mine)), name


def test_tensorflow_gives_the_same_answers_from_profiles_of_tfprof(asked: Asked) -> None:
    for name in asked.reloaded():
        for (question, theirs), (_, mine) in zip(
            asked.answered(f"theirs-{name}"), asked.answered(f"ours-{name}"), strict=True
        ):
            found = list(differences(comparable(question, theirs), comparable(question, mine)))
            assert not found, (name, question)


def test_tfprof_gives_the_answers_of_tensorflow_from_its_profiles(asked: Asked, tmp_path: Path) -> None:
    for name in asked.reloaded():
        wrong = asked.report(f"theirs-{name}", tmp_path)
        assert not wrong, wrong
