"""Cases and what each TensorFlow says of them: made once a session and version."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.oracle import ours
from integration.oracle.cases import REAL, ask_real, write_cases
from integration.oracle.comparison import comparable, differences
from tfprof.collector.api import Profiler

HERE = Path(__file__).parent
#: How many random cases there are, or the first and the last of their seeds.
SETTING = "TFPROF_TEST_ORACLE"


def seeds() -> range:
    """Return the seeds of the random cases."""
    first, _, last = os.environ.get(SETTING, "30").rpartition("-")
    return range(int(first), int(last) + 1) if first else range(int(last))


class Asked:
    """Cases, the answers of TensorFlow's own profiler, and stores with the same cases: in folders by their names."""

    def __init__(self, version: str, python: Path, folder: Path) -> None:
        self.version = version
        self.folder = folder
        self._python = python
        write_cases(folder / "cases", seeds())
        self._run("real_runs.py", folder / "cases")
        for name in REAL:
            ask_real(folder / "cases" / name)
        self._run("oracle.py", folder / "cases", folder / "answers")

    def _run(self, script: str, *arguments: object) -> None:
        command = [self._python, HERE / script, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=1800)
        assert not done.returncode, done.stderr.decode("utf-8", "replace")[-2000:]

    def case(self, name: str) -> Path:
        """Return the folder of a case."""
        return self.folder / "cases" / name

    def store(self, name: str) -> Path:
        """Return a store with a case as its job."""
        store = self.folder / "stores" / name
        if not store.exists():
            ours.import_case(self.case(name), store)
        return store

    def job(self, name: str) -> Profiler:
        """Return a case as a job that has answered nothing yet."""
        return ours.profiler(self.store(name), self.version)

    def answered(self, name: str) -> Iterator[tuple[Any, Any]]:
        """Yield the questions to a case and TensorFlow's answers."""
        questions = json.loads((self.case(name) / "queries.json").read_text())["queries"]
        yield from zip(questions, self.answers(name)["answers"], strict=True)

    def answers(self, name: str) -> Any:
        """Return all that TensorFlow said of a case."""
        return json.loads((self.folder / "answers" / f"{name}.json").read_text())

    def wrong(self, name: str, folder: Path) -> Iterator[tuple[Any, list[str]]]:
        """Yield questions that we answer otherwise, and where; ``folder`` is empty."""
        job = self.job(name)
        for question, theirs in self.answered(name):
            mine = ours.ask(job, question, folder)
            found = list(differences(comparable(question, theirs), comparable(question, mine)))
            if found:
                yield question, found


@pytest.fixture(scope="session", params=["tf1", "tf2"])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """What one version of TensorFlow said of all cases."""
    python = request.getfixturevalue(f"{request.param}_python")
    return Asked(request.param, python, tmp_path_factory.mktemp(request.param))
