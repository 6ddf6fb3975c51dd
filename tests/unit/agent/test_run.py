"""What a command line of tfprof-run asks for."""

import os
from pathlib import Path

import pytest
from tfprof.agent.launches import Dump
from tfprof.agent.run import UsageError, parse


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("TFPROF")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "dump"),
    [
        ((), None),
        (("--dump-steps", "5"), Dump([5], ".")),
        (("--dump-steps=10,5,10", "--dump-dir", "out"), Dump([5, 10], "out")),
        (("--dump-steps", "5", "--dump-dir", "/a/b"), Dump([5], "/a/b")),
    ],
)
def test_profiles_are_asked_for_by_steps_and_folder(tmp_path: Path, words: tuple[str, ...], dump: Dump | None) -> None:
    asked = parse([*words, "true"]).dump
    assert asked == (dump and Dump(dump.steps, os.path.normpath(tmp_path / dump.folder)))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--dump-steps", ""), "'' are no steps for --dump-steps"),
        (("--dump-steps", "1,,2"), "'1,,2' are no steps"),
        (("--dump-steps", "0"), "'0' are no steps"),
        (("--dump-steps", "1-3"), "'1-3' are no steps"),
        (("--dump-steps", "²"), "'²' are no steps"),
        (("--dump-dir", "x"), "--dump-dir without --dump-steps"),
        (("--dump-steps", "1", "--exec"), "--dump-steps writes at the end, when with --exec nobody is there"),
    ],
)
def test_what_cannot_be_written_is_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse([*words, "true"])
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


def test_several_ranges_of_steps_reach_the_job() -> None:
    assert parse(["--trace", "steps=1-3,10", "true"]).changes == {"TFPROF_TRACE": "steps=1-3,10"}
