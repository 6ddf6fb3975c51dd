"""tfprof's answers to the questions of an oracle case, from the public API.

They come from a store into which the case was imported.
"""

import contextlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfprof.cli.import_ import import_
from tfprof.collector.api import Profiler, open_store

#: Environment of TensorFlow -> its version, as the argument `compat`.
COMPAT = {"tf1": "1.15", "tf24": "2.4", "tf2": "2.21"}
_METHODS = {
    "scope": Profiler.profile_name_scope,
    "graph": Profiler.profile_graph,
    "op": Profiler.profile_operations,
    "code": Profiler.profile_python,
}


def import_case(case: Path, store: Path) -> list[float]:
    """Import a case into ``store``; return the share of the graph that each step covers."""
    runs = ",".join(str(case / f"run-{number}.pb") for number in range(len(list(case.glob("run-*.pb")))))
    files = {"graph_path": "graph.pb", "op_log_path": "op_log.pb", "profile_path": "profile.pb"}
    paths = {name: str(case / file) for name, file in files.items() if (case / file).exists()}
    paths |= {"run_meta_path": runs} if runs else {}
    arguments = [*(f"--{name}={path}" for name, path in paths.items()), f"--store={store}", "--json"]
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(io.StringIO()):
        import_.main(arguments, standalone_mode=False)
    return [float(share) for share in json.loads(output.getvalue())["coverage"]]


def profiler(store: Path, version: str) -> Profiler:
    """Return the job of a store with exact parity to TensorFlow ``version``."""
    return open_store(store).job("last", compat=COMPAT[version], exact=True)


def ask(job: Profiler, question: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return tfprof's answer in the form of the oracle's answers; ``folder`` is empty."""
    printed, warned = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(warned):
        if question["view"] == "advise":
            root = job.advise({checker: {} for checker in question["checkers"]})
        else:
            options = question["options"]
            output = options["output"].replace("FOLDER", str(folder))
            root = _METHODS[question["view"]](job, {**options, "output": output})
    files = {path.name: path.read_bytes().decode("latin-1") for path in folder.iterdir()}
    for name in files:
        (folder / name).unlink()
    return {
        "root": root.SerializeToString().decode("latin-1"),
        "files": files,
        "printed": _text_for_comparison(printed, folder),
        "warned": _text_for_comparison(warned, folder),
    }


def _text_for_comparison(output: io.StringIO, folder: Path) -> str:
    """Return what was written to ``output``, with FOLDER for ``folder``, as Latin-1 text."""
    return output.getvalue().replace(str(folder), "FOLDER").encode().decode("latin-1")
