"""Names of commands in the list of processes."""

import pytest
from tfprof.agent.attach.targets import program


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python", "train.py", "--epochs", "2"], "train.py"),
        (["/usr/bin/python3.11", "-u", "-W", "ignore", "/home/ada/bert/train.py"], "train.py"),
        (["python3", "-X", "dev", "-m", "bert.train", "x.py"], "bert.train"),
        (["python"], "python"),
        (["python", "-c", "print()"], "python"),
        (["/opt/serving/model_server", "--port=1"], "model_server"),
    ],
)
def test_a_command_is_named_by_its_script_module_or_program(command: list[str], name: str) -> None:
    assert program(command) == name
