"""What a command line of Python runs, and the option that keeps the shim out."""

from pathlib import Path

import pytest
from tfprof.agent.python_command import interpreter_of, is_python, parse


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("python -I x.py", "-I"),
        ("/usr/bin/python3.11 -sE x.py", "-E"),
        ("python3 -W ignore -S x.py", "-S"),
        ("python -Xdev -S", "-S"),
        ("python --check-hash-based-pycs always -S x.py", "-S"),
        ("python -Im mod", "-I"),
        ("python -WS x.py", None),
        ("python x.py -I", None),
        ("python -c pass -I", None),
        ("python -cI", None),
        ("python -m mod -S", None),
        ("python - -S", None),
        ("python -- -S", None),
        ("python", None),
    ],
)
def test_a_python_that_will_not_load_the_shim_is_recognized(command: str, option: str | None) -> None:
    parsed = parse(command.split())
    assert parsed is not None
    assert parsed.isolating_option == option


@pytest.mark.parametrize(
    ("options", "keeps_path"),
    [("-S", True), ("-SS", True), ("-sSu", True), ("-SE", False), ("-I -S", False), ("", False)],
)
def test_with_s_alone_the_path_stays_and_no_customization_is_loaded(options: str, keeps_path: bool) -> None:
    parsed = parse(["python", *options.split(), "x.py"])
    assert parsed is not None
    assert parsed.keeps_path is keeps_path


@pytest.mark.parametrize(
    ("first_line", "interpreter"),
    [
        ("#!/usr/bin/python3 -S", ["/usr/bin/python3", "-S"]),
        ("#! /usr/bin/env python3", ["python3"]),
        ("#!/usr/bin/env -S python3 -S", ["python3", "-S"]),
        ("#!/bin/sh", None),
        ("#!", None),
        ("#!/usr/bin/env", None),
        ("import os", None),
    ],
)
def test_the_interpreter_of_a_script_is_in_its_first_line(
    tmp_path: Path, first_line: str, interpreter: list[str] | None
) -> None:
    (tmp_path / "script").write_text(f"{first_line}\nprint()\n")
    assert interpreter_of(str(tmp_path / "script")) == interpreter
    assert interpreter_of(str(tmp_path / "missing")) is None
    assert interpreter_of("/opt/bin/python3.11") == ["/opt/bin/python3.11"]


@pytest.mark.parametrize(
    ("command", "script_or_module"),
    [
        ("python -u train.py --epochs 2", "train.py"),
        ("python -W ignore /home/ada/train.py", "/home/ada/train.py"),
        ("python -- -odd.py", "-odd.py"),
        ("python -X dev -m bert.train x.py", "bert.train"),
        ("python -um bert.train", "bert.train"),
        ("python -mbert.train", "bert.train"),
        ("python -m", None),
        ("python -c print()", None),
        ("python -", None),
        ("python -i", None),
    ],
)
def test_the_script_or_module_is_what_python_would_run(command: str, script_or_module: str | None) -> None:
    parsed = parse(command.split())
    assert parsed is not None
    assert parsed.script_or_module == script_or_module


@pytest.mark.parametrize("command", [[], ["bash", "-S"], ["/usr/bin/python-config"], ["pythonic", "-I"]])
def test_other_programs_are_no_python(command: list[str]) -> None:
    assert parse(command) is None


def test_an_interpreter_is_recognized_by_its_name() -> None:
    assert is_python("/opt/bin/pypy3.10")
    assert not is_python("/opt/python3/bin/jupyter")
