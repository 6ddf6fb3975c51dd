"""Cases with the answers of TensorFlow, made once per test session and version of TensorFlow."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.forks import ForkServer
from integration.oracle import tfprof_answers
from integration.oracle.cases import REAL_RUNS, write_cases, write_real_questions
from integration.oracle.comparison import comparable, differences
from tfprof.collector.api import Profiler

HERE = Path(__file__).parent
#: The scripts that run under TensorFlow.
SCRIPTS = HERE / "scripts"
#: The environment variable with the number of random cases, or with their seeds as FIRST-LAST.
SETTING = "TFPROF_TEST_ORACLE"
#: The smallest number of questions to views in the case of a real run.
QUESTIONS_MIN = 40
#: The largest number of questions in a report, and of differences for each question.
SHOWN_MAX = 5
#: One random case in this many is also exported as a profile and read again.
CASES_PER_RELOAD = 4


def seeds() -> range:
    """Return the seeds of the random cases."""
    first, _, last = os.environ.get(SETTING, "30").rpartition("-")
    return range(int(first), int(last) + 1) if first else range(int(last))


class AnsweredCases:
    """Cases, the answers of the TF profiler, and stores with the same cases, in folders by name."""

    def __init__(self, version: str, tensorflow: ForkServer, folder: Path) -> None:
        self.version = version
        self.folder = folder
        self.coverage: dict[str, list[float]] = {}
        self._tensorflow = tensorflow
        write_cases(folder / "cases", seeds())
        tensorflow.output(SCRIPTS / "real_runs.py", folder / "cases")
        for name in REAL_RUNS:
            write_real_questions(folder / "cases" / name, max(QUESTIONS_MIN, len(seeds())))
        tensorflow.output(SCRIPTS / "answers.py", folder / "cases", folder / "answers")
        self._reload()

    def _reload(self) -> None:
        """Let TensorFlow answer from its own profiles and from ours.

        Case `theirs-NAME` has TensorFlow's profile of case NAME, and `ours-NAME` has ours.
        """
        for name in self.reloaded_names():
            mine, theirs = self.job(name).serialize_to_string(), self.answers(name)["profile"].encode("latin-1")
            for whose, profile in (("ours", mine), ("theirs", theirs)):
                folder = self.case(f"{whose}-{name}")
                folder.mkdir(parents=True)
                (folder / "profile.pb").write_bytes(profile)
                shutil.copy(self.case(name) / "queries.json", folder)
        self._tensorflow.output(SCRIPTS / "answers.py", self.folder / "profiles", self.folder / "answers")

    def reloaded_names(self) -> list[str]:
        """Return the names of some cases of which TensorFlow can write a profile."""
        names = [name for name in map(str, seeds()) if "profile" in self.answers(name)]
        return [*names[::CASES_PER_RELOAD], *REAL_RUNS]

    def case(self, name: str) -> Path:
        """Return the folder of a case."""
        return self.folder / ("profiles" if "-" in name else "cases") / name

    def store(self, name: str) -> Path:
        """Return a store whose job is the case."""
        store = self.folder / "stores" / name
        if not store.exists():
            self.coverage[name] = tfprof_answers.import_case(self.case(name), store)
        return store

    def job(self, name: str) -> Profiler:
        """Return a new Profiler of a case."""
        return tfprof_answers.profiler(self.store(name), self.version)

    def questions(self, name: str) -> Iterator[tuple[Any, Any]]:
        """Yield the questions to a case and TensorFlow's answers."""
        questions = json.loads((self.case(name) / "queries.json").read_text())["queries"]
        yield from zip(questions, self.answers(name)["answers"], strict=True)

    def answers(self, name: str) -> Any:
        """Return the whole output of TensorFlow about a case."""
        return json.loads((self.folder / "answers" / f"{name}.json").read_text())

    def wrong_answers(self, name: str, folder: Path) -> Iterator[tuple[Any, list[str]]]:
        """Yield (question, differences) for each wrong answer; ``folder`` is empty."""
        job = self.job(name)
        for question, theirs in self.questions(name):
            mine = tfprof_answers.ask(job, question, folder)
            texts = list(differences(comparable(question, theirs), comparable(question, mine)))
            if texts:
                yield question, texts

    def report(self, name: str, folder: Path) -> str:
        """Return some of the wrong answers and a command that repeats them; '' if all are right."""
        wrong = list(self.wrong_answers(name, folder))
        lines = [f"{question}\n    " + "\n    ".join(texts[:SHOWN_MAX]) for question, texts in wrong[:SHOWN_MAX]]
        seed = name.rpartition("-")[2]
        setting = f"{SETTING}={seed}-{seed} " if seed.isdecimal() else ""
        command = f"{setting}.venv/bin/python -m pytest {HERE} -k {self.version}"
        return f"{len(wrong)} wrong answers about {name}\n" + "\n".join([*lines, command]) if wrong else ""


@pytest.fixture(scope="session")
def cases_of_version() -> dict[str, AnsweredCases]:
    """The answered cases by version, since pytest itself keeps only those of the last parameter."""
    return {}


@pytest.fixture(params=[*tfprof_answers.COMPAT])
def cases(
    request: pytest.FixtureRequest,
    cases_of_version: dict[str, AnsweredCases],
    plain_forks: Callable[[str], ForkServer],
    tmp_path_factory: pytest.TempPathFactory,
) -> AnsweredCases:
    """All cases with the answers of one version of TensorFlow."""
    version = request.param
    if version not in cases_of_version:
        cases_of_version[version] = AnsweredCases(version, plain_forks(version), tmp_path_factory.mktemp(version))
    return cases_of_version[version]
