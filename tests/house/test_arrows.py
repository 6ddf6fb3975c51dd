"""Who may import whom: shim only the standard library; agent and collector the shim, never each other."""

import sys

import pytest
from house.tree import imports, sources

ALLOWED = {
    "shim": ("tfprof.shim",),
    "agent": ("tfprof.agent", "tfprof.shim"),
    "collector": ("tfprof.collector", "tfprof.shim"),
}
#: What the shim finds in a job: loaded by TensorFlow before any of our patches runs.
JOB_BRINGS = ("tensorflow", "tf_keras", "keras", "wrapt")


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_no_part_imports_a_part_that_it_may_not(part: str) -> None:
    wrong = [
        f"{path}: {name}"
        for path in sources(part)
        for name in imports(path)
        if name.split(".")[0] == "tfprof" and not name.startswith(ALLOWED[part])
    ]
    assert not wrong


def test_the_shim_imports_only_the_standard_library_and_what_the_job_has() -> None:
    wrong = [
        f"{path}: {name}"
        for path in sources("shim")
        for name in imports(path)
        if name.split(".")[0] not in sys.stdlib_module_names | {"tfprof", "_tfprof_shim", "sitecustomize"}
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
