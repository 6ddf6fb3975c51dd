"""Profiles go from TensorFlow's own profiler to ours and back: each reads what the other writes, and answers alike."""

from pathlib import Path

import pytest
from integration.oracle.comparison import comparable, differences
from integration.oracle.conftest import Asked
from integration.oracle.profiles import told

pytestmark = pytest.mark.tf


def test_our_profiles_say_what_tensorflows_say(asked: Asked) -> None:
    for name in asked.reloaded():
        mine, theirs = (
            told((asked.case(f"{whose}-{name}") / "profile.pb").read_bytes()) for whose in ("ours", "theirs")
        )
        assert not list(differences(theirs, mine)), name


def test_tensorflow_answers_from_our_profiles_as_from_its_own(asked: Asked) -> None:
    for name in asked.reloaded():
        for (question, theirs), (_, mine) in zip(
            asked.answered(f"theirs-{name}"), asked.answered(f"ours-{name}"), strict=True
        ):
            found = list(differences(comparable(question, theirs), comparable(question, mine)))
            assert not found, (name, question)


def test_we_answer_from_tensorflows_profiles_as_it_does(asked: Asked, tmp_path: Path) -> None:
    for name in asked.reloaded():
        wrong = asked.report(f"theirs-{name}", tmp_path)
        assert not wrong, wrong
