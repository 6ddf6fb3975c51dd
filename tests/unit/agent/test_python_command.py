"""What a command line of Python runs, and the option that keeps the shim out."""

import pytest
from tfprof.agent.python_command import is_python, parse


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
