"""Who may import whom: each room has its row; no room is in a circle, and nothing is imported by a string but what is listed."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from house.tree import PARTS, ROOT, imports, sources, tree

#: Room -> the rooms that it may import, beside itself and what is generated.
ALLOWED = {
    "formats": "",
    "commands": "formats",
    "shim": "formats shim.channel shim.pacing",
    "shim.channel": "formats shim shim.pacing shim.tensorflow",
    "shim.pacing": "formats shim shim.channel shim.tensorflow",
    "shim.tensorflow": "formats shim shim.channel shim.pacing",
    "agent": "formats commands agent.daemon",
    "agent.daemon": "formats commands agent agent.transport",
    "agent.launcher": "formats commands agent",
    "agent.transport": "formats agent",
    "collector": "formats commands collector.decoders collector.ingest collector.query collector.render collector.store "
    "collector.summaries collector.tfviews",
    "collector.advice": "collector collector.decoders collector.render collector.summaries collector.tfviews",
    "collector.decoders": "collector collector.store",
    "collector.export": "collector collector.advice collector.flops collector.query collector.render collector.store "
    "collector.tfviews",
    "collector.flops": "collector collector.store collector.tfviews",
    "collector.imports": "formats collector collector.decoders collector.export collector.flops collector.ingest "
    "collector.query collector.store collector.tfviews",
    "collector.ingest": "formats collector collector.decoders collector.store",
    "collector.query": "formats collector collector.advice collector.export collector.flops collector.render "
    "collector.store collector.summaries collector.tfviews",
    "collector.render": "formats collector collector.advice collector.query collector.store collector.summaries "
    "collector.tfviews",
    "collector.store": "formats collector",
    "collector.summaries": "formats collector collector.render collector.store collector.tfviews",
    "collector.tfviews": "collector collector.flops collector.store",
    "cli": "formats commands collector collector.advice collector.decoders collector.export collector.imports "
    "collector.query collector.render collector.store collector.summaries collector.tfviews",
}
GENERATED = {"collector.proto", "collector.decoders.proto"}
#: Modules that are named by a string, as what a process is started with: file -> modules.
STARTED = {
    "agent/daemon_start.py": {"agent.__main__", "collector.__main__"},
    "agent/launcher/report.py": {"cli.report"},
    "commands/isolated.py": {"agent.launcher.run", "cli.main"},
}
#: What the shim finds in a job: loaded by TensorFlow before any of our patches runs.
JOB_BRINGS = ("tensorflow", "tf_keras", "keras", "wrapt")


def _rooms() -> set[str]:
    return {
        ".".join(path.parent.relative_to(ROOT).parts) for top in PARTS for path in (ROOT / top).rglob("__init__.py")
    }


def _room(module: str) -> str:
    """Return the room that ``module``, or what it is an attribute of, lies in."""
    parts = module.split(".")
    rooms = _rooms()
    return next((room for end in range(len(parts), 0, -1) if (room := ".".join(parts[:end])) in rooms), "")


def _imported(path: Path) -> Iterator[str]:
    """Yield the modules of ours that ``path`` imports, without the package's name."""
    for name in imports(path):
        if name.startswith("tfprof."):
            yield name.removeprefix("tfprof.")


def test_every_room_has_a_row() -> None:
    assert set(ALLOWED) == _rooms() - GENERATED


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_no_room_imports_one_that_it_may_not(room: str) -> None:
    may = {room, *ALLOWED[room].split(), *(GENERATED if room.startswith(("collector", "cli")) else ())}
    wrong = [
        f"{path.relative_to(ROOT)}: {module}"
        for path in sources(room.split(".", maxsplit=1)[0])
        if ".".join(path.parent.relative_to(ROOT).parts) == room
        for module in _imported(path)
        if _room(module) not in may
    ]
    assert not wrong


def test_nothing_is_imported_by_a_string_but_what_a_process_is_started_with() -> None:
    found = {}
    for path in sources():
        names = {
            node.value.removeprefix("tfprof.")
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_module(node.value)
        }
        if names:
            found[str(path.relative_to(ROOT))] = names
    assert found == STARTED


def _is_module(text: str) -> bool:
    top, _, module = text.partition(".")
    return top == "tfprof" and (ROOT / module.replace(".", "/")).with_suffix(".py").exists()


def test_imports_of_ours_are_relative() -> None:
    assert not [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources()
        for node in ast.walk(tree(path))
        if (isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("tfprof"))
        or (isinstance(node, ast.Import) and any(alias.name.startswith("tfprof") for alias in node.names))
    ]


@pytest.mark.parametrize("room", ["formats", "commands", "shim"])
def test_what_runs_in_jobs_or_starts_us_imports_only_the_standard_library_and_what_the_job_has(room: str) -> None:
    wrong = [
        f"{path}: {name}"
        for path in sources(room)
        for name in imports(path)
        if name.split(".")[0] not in sys.stdlib_module_names | {"tfprof", "_tfprof", "sitecustomize"}
        and not name.startswith(JOB_BRINGS)
    ]
    assert not wrong


def test_the_launcher_starts_without_third_party_packages() -> None:
    import subprocess

    code = "import sys, tfprof.agent.launcher.run; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    third = {"zmq", "psutil", "pyarrow", "duckdb", "click", "rich", "google.protobuf", "asyncio"}
    assert not third & set(loaded)


def test_the_collector_daemon_never_loads_the_query_engine() -> None:
    import subprocess

    code = "import sys, tfprof.collector.daemon; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "duckdb" not in loaded
    assert "rich" not in loaded
