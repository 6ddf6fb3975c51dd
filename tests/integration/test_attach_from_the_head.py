"""`tfprof attach --host`: the agent of a node attaches to a process there, if that is allowed."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.hosts import Host, listening_head
from fakes.polling import until

LOOP = Path(__file__).parent / "jobs" / "attach_loop.py"

pytestmark = [pytest.mark.tf, pytest.mark.timeout(600)]


@pytest.fixture
def hosts(folder: Path) -> Iterator[tuple[Host, Host]]:
    with listening_head(folder) as (head, node, _):
        node.run("tfprof", "start")
        yield head, node


@pytest.fixture
def loop(tf2_python: Path, tmp_path: Path) -> Iterator[int]:
    """The pid of a training loop, which must end well."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith("TFPROF_")}
    command = [str(tf2_python), str(LOOP), "session", str(tmp_path)]
    process = subprocess.Popen(
        command, env={**environ, "CUDA_VISIBLE_DEVICES": ""}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until((tmp_path / "running").exists, "the loop", 180)
    yield process.pid
    (tmp_path / "stop").touch()
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, "<tfprof" in errors) == (0, False), errors[-4000:]


def attach(head: Host, pid: int, *options: str) -> subprocess.CompletedProcess[str]:
    return head.run("tfprof", "attach", "--host", "node1", str(pid), *options)


def test_steps_of_a_process_of_a_node_are_traced(hosts: tuple[Host, Host], loop: int) -> None:
    head, node = hosts
    until(lambda: "[remote-attach]" in attach(head, loop).stderr)
    assert head.jobs() == []
    with (node.home / "config/tfprof/config.toml").open("a") as settings:
        settings.write("remote-attach = true\n")
    traced = attach(head, loop, "--steps", "3", "-o", "ops", "-o", "run.json", "--name", "--all")
    assert traced.returncode == 0, traced.stderr
    assert "attached by" in traced.stderr
    assert "MatMul" in traced.stdout
    assert json.loads((head.home / "run.json").read_text())
    (job,) = head.jobs()
    assert (job["host"], job["pid"], job["name"], job["traced"], job["state"]) == (
        "node1",
        loop,
        "--all",
        3,
        "detached",
    )
    attached = attach(head, loop, "--name", "stays")
    assert (attached.returncode, "tfprof detach" in attached.stderr) == (0, True)
    until(lambda: [job["state"] for job in head.jobs() if job["name"] == "stays"] == ["running"])
    again = attach(head, loop, "--steps", "3")
    assert (again.returncode, "[already-profiled]" in again.stderr) == (1, True)
    (process,) = [
        process
        for process in json.loads(head.run("tfprof", "ps", "--host", "node1", "--json").stdout)["processes"]
        if process["pid"] == loop
    ]
    assert (process["state"], process["job"]) == ("profiled", "stays")
    assert head.order("detach", "stays")[0] == 0
    for options, slug in (((), "[no-such-process]"), (("--trace", "x"), "[trace-policy]")):
        refused = attach(head, loop if options else 4194303, *options)
        assert (refused.returncode, slug in refused.stderr) == (1, True), refused.stderr
    with (node.home / "config/tfprof/config.toml").open("a") as settings:
        settings.write("remote-orders = false\n")
    assert "[remote-orders]" in attach(head, loop).stderr
