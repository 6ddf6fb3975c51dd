"""Cases and what each TensorFlow says of them: made once a session and version."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.forks import Forks
from integration.oracle import ours
from integration.oracle.cases import REAL, ask_real, write_cases
from integration.oracle.comparison import comparable, differences
from tfprof.collector.api import Profiler

HERE = Path(__file__).parent
#: How many random cases there are, or the first and the last of their seeds.
SETTING = "TFPROF_TEST_ORACLE"
#: Questions to each real run, at least.
ASKED_OF_REAL = 40
#: Differences that are printed of a case.
SHOWN = 5
#: One case of so many is read from profiles, too.
RELOADED = 4


def seeds() -> range:
    """Return the seeds of the random cases."""
    first, _, last = os.environ.get(SETTING, "30").rpartition("-")
    return range(int(first), int(last) + 1) if first else range(int(last))


class Asked:
    """Cases, the answers of TensorFlow's own profiler, and stores with the same cases: in folders by their names."""

    def __init__(self, version: str, tensorflow: Forks, folder: Path) -> None:
        self.version = version
        self.folder = folder
        self.coverage: dict[str, list[float]] = {}
        self._tensorflow = tensorflow
        write_cases(folder / "cases", seeds())
        tensorflow.output(HERE / "real_runs.py", folder / "cases")
        for name in REAL:
            ask_real(folder / "cases" / name, max(ASKED_OF_REAL, len(seeds())))
        tensorflow.output(HERE / "oracle.py", folder / "cases", folder / "answers")
        self._reload()

    def _reload(self) -> None:
        """Have TensorFlow answer from its own profiles and from ours: of case N as `theirs-N` and `ours-N`."""
        for name in self.reloaded():
            mine, theirs = self.job(name).serialize_to_string(), self.answers(name)["profile"].encode("latin-1")
            for whose, profile in (("ours", mine), ("theirs", theirs)):
                folder = self.case(f"{whose}-{name}")
                folder.mkdir(parents=True)
                (folder / "profile.pb").write_bytes(profile)
                shutil.copy(self.case(name) / "queries.json", folder)
        self._tensorflow.output(HERE / "oracle.py", self.folder / "profiles", self.folder / "answers")

    def reloaded(self) -> list[str]:
        """Return the names of some cases that TensorFlow can write as a profile."""
        whole = [name for name in map(str, seeds()) if "profile" in self.answers(name)]
        return [*whole[::RELOADED], *REAL]

    def case(self, name: str) -> Path:
        """Return the folder of a case."""
        return self.folder / ("profiles" if "-" in name else "cases") / name

    def store(self, name: str) -> Path:
        """Return a store with a case as its job."""
        store = self.folder / "stores" / name
        if not store.exists():
            self.coverage[name] = ours.import_case(self.case(name), store)
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

    def report(self, name: str, folder: Path) -> str:
        """Return what is answered otherwise, a few of it, and how to see that again; '' when nothing is."""
        wrong = list(self.wrong(name, folder))
        lines = [f"{question}\n    " + "\n    ".join(found[:SHOWN]) for question, found in wrong[:SHOWN]]
        seed = name.rpartition("-")[2]
        setting = f"{SETTING}={seed}-{seed} " if seed.isdecimal() else ""
        again = f"{setting}.venv/bin/python -m pytest {HERE} -k {self.version}"
        return f"{len(wrong)} questions to {name}\n" + "\n".join([*lines, again]) if wrong else ""


@pytest.fixture(scope="session")
def known() -> dict[str, Asked]:
    """What each version of TensorFlow said, as soon as somebody asked.

    Pytest would ask anew whenever the version changes.
    """
    return {}


@pytest.fixture(params=["tf1", "tf2"])
def asked(
    request: pytest.FixtureRequest,
    known: dict[str, Asked],
    asking: Callable[[str], Forks],
    tmp_path_factory: pytest.TempPathFactory,
) -> Asked:
    """What one version of TensorFlow said of all cases."""
    version = request.param
    if version not in known:
        known[version] = Asked(version, asking(version), tmp_path_factory.mktemp(version))
    return known[version]
