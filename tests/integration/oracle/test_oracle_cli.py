"""The commands give the answers of the TF profiler as text, files and JSON."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from integration.oracle.cases import REAL_RUNS
from integration.oracle.comparison import MESSAGES, comparable, differences
from integration.oracle.conftest import AnsweredCases, seeds
from integration.oracle.queries import ODD_ORDERS, SELECTS, VIEWS
from integration.oracle.tfprof_answers import COMPAT
from tfprof.collector.proto import tfprof_output_pb2
from tfprof.collector.tfviews.option_values import pieces

pytestmark = pytest.mark.tf
#: Number of questions to each view, in each form.
QUESTIONS_EACH = 3
#: Numbers of the fields with the children in both kinds of messages.
CHILDREN = {11, 12}
#: The spellings of options by the TF profiler and by tfprof.
SPELLINGS: dict[str, Callable[[str, str], list[str]]] = {
    "theirs": lambda name, value: [f"-{name}", value],
    "ours": lambda name, value: [f"--{name.replace('_', '-')}={value}"],
}


def text_of(value: Any) -> str:
    """Return an option's value as a user writes it."""
    return ",".join(value) if isinstance(value, list) else str(value)


def is_plain(options: Mapping[str, Any]) -> bool:
    """Return whether a command accepts ``options``: valid choices, no commas or quotes in lists."""
    lists = [value for value in options.values() if isinstance(value, list)]
    return (
        all(pieces(text_of(value)) == value for value in lists)
        and set(options["select"]) <= set(SELECTS)
        and bool(options["select"])
        and options["order_by"] not in ODD_ORDERS
    )


def plain_questions(cases: AnsweredCases, view: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield (case, question, answer) for a view and a file.

    Answers without children are left out, since a command prints the reason instead of them.
    """
    for name in [*REAL_RUNS, *map(str, seeds())]:
        for question, answer in cases.questions(name):
            options = question.get("options", {})
            is_asked = question["view"] == view and options["output"].startswith("file")
            if is_asked and is_plain(options) and CHILDREN & set(comparable(question, answer)["message"]):
                yield name, question, answer


def first_questions(cases: AnsweredCases, view: str) -> list[tuple[str, Any, Any]]:
    """Return the first QUESTIONS_EACH of these."""
    questions = list(islice(plain_questions(cases, view), QUESTIONS_EACH))
    assert len(questions) == QUESTIONS_EACH
    return questions


def tfprof(
    cases: AnsweredCases, name: str, question: Any, spelling: str, *more: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the command of one question."""
    options = {key: value for key, value in question["options"].items() if key != "output"}
    words = [word for key, value in options.items() for word in SPELLINGS[spelling](key, text_of(value))]
    command = [
        sys.executable,
        "-m",
        "tfprof.cli.main",
        question["view"],
        "last",
        f"--store={cases.store(name)}",
    ]
    settings = [f"--compat={COMPAT[cases.version]}", "--exact-tf", *more]
    return subprocess.run([*command, *settings, *words], capture_output=True, check=True, timeout=60)


@pytest.mark.parametrize("view", VIEWS)
def test_the_files_of_commands_equal_those_of_the_tf_profiler(cases: AnsweredCases, view: str, tmp_path: Path) -> None:
    for at, (name, question, theirs) in enumerate(first_questions(cases, view)):
        out = tmp_path / "out"
        tfprof(cases, name, question, list(SPELLINGS)[at % 2], f"-output=file:outfile={out}")
        mine = {**theirs, "files": {"out": out.read_bytes().decode("latin-1")}}
        assert not list(differences(comparable(question, theirs), comparable(question, mine))), (name, question)
        assert set(theirs["files"]) == {"out"}


@pytest.mark.parametrize("view", VIEWS)
def test_the_json_of_commands_equals_the_message_of_the_tf_profiler(cases: AnsweredCases, view: str) -> None:
    for at, (name, question, theirs) in enumerate(first_questions(cases, view)):
        completed = tfprof(cases, name, question, list(SPELLINGS)[at % 2], "--json")
        message = getattr(tfprof_output_pb2, MESSAGES[view])()
        json_format.ParseDict(json.loads(completed.stdout)["profile"], message)
        mine = {**theirs, "root": message.SerializeToString().decode("latin-1")}
        assert not list(differences(comparable(question, theirs), comparable(question, mine))), (name, question)


@pytest.mark.parametrize("view", VIEWS)
def test_the_output_of_commands_equals_the_text_of_the_tf_profiler(cases: AnsweredCases, view: str) -> None:
    for at, (name, question, theirs) in enumerate(first_questions(cases, view)):
        completed = tfprof(cases, name, question, list(SPELLINGS)[at % 2])
        mine = {**theirs, "files": {"out": completed.stdout.decode("latin-1")}}
        assert not list(differences(comparable(question, theirs), comparable(question, mine))), (name, question)
