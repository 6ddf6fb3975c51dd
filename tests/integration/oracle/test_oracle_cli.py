"""The commands answer as TensorFlow's own profiler.

They run as processes, with tfprof's spelling of options and ours, files and JSON.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from integration.oracle.cases import REAL
from integration.oracle.comparison import MESSAGES, comparable, differences
from integration.oracle.conftest import Asked, seeds
from integration.oracle.ours import COMPAT
from integration.oracle.queries import ODD_ORDERS, SELECTS, VIEWS
from tfprof.collector.proto import tfprof_output_pb2
from tfprof.collector.tfviews.option_values import pieces

pytestmark = pytest.mark.tf
#: Questions to each view, in each form.
TRIED = 3
#: Fields of what is shown below the root, in either message.
CHILDREN = {11, 12}
SPELLINGS: dict[str, Callable[[str, str], list[str]]] = {
    "tfprof": lambda name, value: [f"-{name}", value],
    "ours": lambda name, value: [f"--{name.replace('_', '-')}={value}"],
}


def text_of(value: Any) -> str:
    """Return an option's value as a user writes it."""
    return ",".join(value) if isinstance(value, list) else str(value)


def is_plain(options: Mapping[str, Any]) -> bool:
    """Return whether a user can say all of ``options``: no name of a list has a comma, or quotes around it."""
    lists = [value for value in options.values() if isinstance(value, list)]
    return (
        all(pieces(text_of(value)) == value for value in lists)
        and set(options["select"]) <= set(SELECTS)
        and bool(options["select"])
        and options["order_by"] not in ODD_ORDERS
    )


def tried(asked: Asked, view: str, output: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield cases, questions and answers for a view and a form of output.

    Where nothing is shown, a command says why instead.
    """
    for name in [*REAL, *map(str, seeds())]:
        for question, answer in asked.answered(name):
            options = question.get("options", {})
            of_form = question["view"] == view and options["output"].startswith(output)
            if of_form and is_plain(options) and CHILDREN & set(comparable(question, answer)["message"]):
                yield name, question, answer


def tfprof(asked: Asked, name: str, question: Any, spelled: str, *more: str) -> subprocess.CompletedProcess[bytes]:
    """Ask one question in a process of its own."""
    options = {key: value for key, value in question["options"].items() if key != "output"}
    words = [word for key, value in options.items() for word in SPELLINGS[spelled](key, text_of(value))]
    command = [
        sys.executable,
        "-m",
        "tfprof.cli.main",
        question["view"],
        "last",
        f"--store={asked.store(name)}",
    ]
    how = [f"--compat={COMPAT[asked.version]}", "--exact-tf", *more]
    return subprocess.run([*command, *how, *words], capture_output=True, check=True, timeout=60)


@pytest.mark.parametrize("view", VIEWS)
def test_files_that_commands_write_are_tensorflows(asked: Asked, view: str, tmp_path: Path) -> None:
    for at, (name, question, theirs) in enumerate(islice(tried(asked, view, "file"), TRIED)):
        out = tmp_path / "out"
        tfprof(asked, name, question, list(SPELLINGS)[at % 2], f"-output=file:outfile={out}")
        mine = {**theirs, "files": {"out": out.read_bytes().decode("latin-1")}}
        assert not list(differences(comparable(question, theirs), comparable(question, mine))), (name, question)
        assert set(theirs["files"]) == {"out"}


@pytest.mark.parametrize("view", VIEWS)
def test_json_of_commands_is_tensorflows_message(asked: Asked, view: str) -> None:
    for at, (name, question, theirs) in enumerate(islice(tried(asked, view, "file"), TRIED)):
        done = tfprof(asked, name, question, list(SPELLINGS)[at % 2], "--json")
        message = getattr(tfprof_output_pb2, MESSAGES[view])()
        json_format.ParseDict(json.loads(done.stdout)["profile"], message)
        mine = {**theirs, "root": message.SerializeToString().decode("latin-1")}
        assert not list(differences(comparable(question, theirs), comparable(question, mine))), (name, question)


@pytest.mark.parametrize("view", VIEWS)
def test_what_commands_print_is_tensorflows_text(asked: Asked, view: str) -> None:
    for at, (name, question, theirs) in enumerate(islice(tried(asked, view, "file"), TRIED)):
        done = tfprof(asked, name, question, list(SPELLINGS)[at % 2])
        mine = {**theirs, "files": {"out": done.stdout.decode("latin-1")}}
        assert not list(differences(comparable(question, theirs), comparable(question, mine))), (name, question)
