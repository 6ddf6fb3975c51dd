"""The TF profiler and tfprof read each other's profiles, and answer questions from them alike."""

from pathlib import Path

import pytest
from integration.oracle.comparison import comparable, differences
from integration.oracle.conftest import AnsweredCases
from integration.oracle.profiles import content
from integration.oracle.tfprof_answers import COMPAT, import_case
from tfprof.collector.exporters.profile_proto import job_pieces
from tfprof.collector.store.reader import LocalStore

pytestmark = pytest.mark.tf


def test_profiles_of_tfprof_equal_those_of_tensorflow(cases: AnsweredCases) -> None:
    for name in cases.reloaded_names():
        mine, theirs = (
            content((cases.case(f"{whose}-{name}") / "profile.pb").read_bytes()) for whose in ("ours", "theirs")
        )
        assert not list(differences(theirs, mine)), name


def test_tensorflow_gives_the_same_answers_from_profiles_of_tfprof(cases: AnsweredCases) -> None:
    for name in cases.reloaded_names():
        for (question, theirs), (_, mine) in zip(
            cases.questions(f"theirs-{name}"), cases.questions(f"ours-{name}"), strict=True
        ):
            texts = list(differences(comparable(question, theirs), comparable(question, mine)))
            assert not texts, (name, question)


def test_tfprof_gives_the_answers_of_tensorflow_from_its_profiles(cases: AnsweredCases, tmp_path: Path) -> None:
    for name in cases.reloaded_names():
        report = cases.report(f"theirs-{name}", tmp_path)
        assert not report, report


def test_a_profile_that_is_read_and_written_does_not_change(cases: AnsweredCases, tmp_path: Path) -> None:
    """Neither does what TensorFlow writes after it has read its own profile."""
    for name in cases.reloaded_names():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "profile.pb").write_bytes(cases.answers(f"theirs-{name}")["profile"].encode("latin-1"))
        import_case(folder, folder / "store")
        for case, store in ((cases.case(f"theirs-{name}"), cases.store(f"theirs-{name}")), (folder, folder / "store")):
            theirs, job = content((case / "profile.pb").read_bytes()), LocalStore(store).job("last")
            # Any parity gives the same profile: the file has the output slot of each input.
            for compat in COMPAT.values():
                mine = content(b"".join(job_pieces(job, compat=compat)))
                assert not list(differences(theirs, mine)), name
