"""Names of commands in the list of processes."""

from pathlib import Path

import pytest
from tfprof.agent.attach.targets import program, refusal_of


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


def test_a_thread_of_the_kernel_is_named_as_such() -> None:
    name = Path("/proc/2/comm")
    if not name.exists() or name.read_text() != "kthreadd\n":
        pytest.skip("a container shows no threads of the kernel")
    refusal = refusal_of(2)
    assert refusal is not None
    assert (refusal.slug, refusal.args[0]) == ("not-python", "it is a thread of the kernel")
