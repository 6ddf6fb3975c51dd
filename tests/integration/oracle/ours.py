"""Our answers to the oracle's questions: from a store that holds the same case, by the same path as a user's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fakes.made_store import traced, write_job
from tfprof.collector.answers import About, Desk
from tfprof.collector.errors import NoSuchStepError
from tfprof.collector.store.reader import Job, Store
from tfprof.collector.views.options import from_dict
from tfprof.collector.views.rules import Rules


def stored(case: Path, folder: Path) -> Job:
    """Import a case into a store of its own in ``folder``; return the job that it is there."""
    parts = [part.read_bytes() for part in sorted(case.glob("run-*.pb"))]
    write_job(folder, 1, traced((case / "graph.pb").read_bytes(), parts))
    return Store(folder).job("last")


class Ours:
    """Answers questions about one job, strictly as TensorFlow of version ``compat`` does."""

    def __init__(self, job: Job, compat: str) -> None:
        self.about = About((job,), rules=Rules(compat, strict=True))
        self.desk = Desk()

    def ask(self, question: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return the answer as the oracle gives it."""
        options = from_dict({**question["options"], "output": "none"})
        kind = question["options"]["output"]
        try:
            answer = self.desk.ask(self.about, question["view"], options, whole=True)
        except NoSuchStepError:
            return {"root": "", "files": {}, "printed": ""}
        root = answer.message().SerializeToString().decode("latin-1")
        files = {}
        if kind == "file":
            files["out"] = "".join(f"{line}\n" for line in answer.lines()).encode().decode("latin-1")
        return {"root": root, "files": files, "printed": ""}
